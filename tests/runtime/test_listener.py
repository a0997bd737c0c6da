"""Hearing that a queue has work, through everything that can happen to a connection (B046, B060)."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

import pytest
from django.db.backends.postgresql.base import DatabaseWrapper

from django_pgbroker.runtime.listener import CHANNEL, Listener
from tests.maintenance.connections import rows
from tests.maintenance.waiting import wait_until

__all__ = ["rows"]

BACKEND = (
    "select pid from pg_stat_activity "
    "where datname = current_database() and application_name = 'pgbroker listener ears'"
)


@pytest.fixture
def heard():
    return SimpleQueue()


@contextmanager
def listening(heard) -> Iterator[Listener]:
    listener = Listener("default", "ears", heard.put)
    listener.start()
    try:
        yield listener
    finally:
        listener.stop()
        listener.join(10)
        assert not listener.is_alive()


def events(caplog):
    return [record.event for record in caplog.records if hasattr(record, "event")]


def notify(rows, queue):
    rows.run("select pg_notify(%s, %s)", CHANNEL, queue)


def test_it_asks_for_a_look_at_everything_when_it_is_connected_and_then_names_queues(rows, heard):
    with listening(heard):
        assert heard.get(timeout=10) is None
        for queue in ("mail", "default", "mail"):
            notify(rows, queue)
        assert [heard.get(timeout=10) for _ in range(3)] == ["mail", "default", "mail"]


def test_it_does_not_hear_other_channels(rows, heard):
    with listening(heard):
        heard.get(timeout=10)
        rows.run("select pg_notify('elsewhere', 'x')")
        notify(rows, "mail")
        assert heard.get(timeout=10) == "mail"


def test_a_connection_that_was_cut_comes_back_by_itself_with_a_look_at_what_was_missed(rows, heard, caplog):
    with caplog.at_level(logging.INFO, "django_pgbroker"), listening(heard):
        heard.get(timeout=10)
        for queue in ("first", "second"):
            rows.run(f"select pg_terminate_backend(pid, 5000) from ({BACKEND}) as victim")
            assert heard.get(timeout=10) is None
            notify(rows, queue)
            assert heard.get(timeout=10) == queue
    assert events(caplog) == ["listener.lost", "listener.back"] * 2


def test_while_it_cannot_connect_it_tries_again_ever_more_rarely_and_says_so_once(rows, heard, caplog, monkeypatch):
    with caplog.at_level(logging.INFO, "django_pgbroker"), listening(heard) as listener:
        heard.get(timeout=10)
        waits = []
        next_seconds = listener._backoff.next_seconds
        monkeypatch.setattr(listener._backoff, "next_seconds", lambda: waits.append(next_seconds()) or waits[-1])
        params = DatabaseWrapper.get_connection_params
        with monkeypatch.context() as patch:
            patch.setattr(
                DatabaseWrapper, "get_connection_params", lambda wrapper: {**params(wrapper), "dbname": "no_such"}
            )
            rows.run(f"select pg_terminate_backend(pid, 5000) from ({BACKEND}) as victim")
            wait_until(lambda: len(waits) >= 5, "several tries")
        assert heard.get(timeout=10) is None
    assert events(caplog) == ["listener.lost", "listener.back"]
    assert waits[-1] >= 0.8, "no busy loop"


def test_an_error_that_is_none_of_the_driver_does_not_end_it(rows, heard, monkeypatch, caplog):
    """Settings may fetch a password from somewhere that is away."""
    failures = []
    params = DatabaseWrapper.get_connection_params

    def fail_twice(wrapper):
        if len(failures) < 2:
            failures.append(1)
            raise RuntimeError("the vault is away")
        return params(wrapper)

    monkeypatch.setattr(DatabaseWrapper, "get_connection_params", fail_twice)
    with listening(heard):
        assert heard.get(timeout=10) is None
    assert len(failures) == 2
    assert "the vault is away" in caplog.text


def test_a_stop_ends_it_within_about_a_second_and_closes_its_connection(rows, heard):
    with listening(heard):
        heard.get(timeout=10)
        assert rows.one(BACKEND)
    wait_until(lambda: rows.one(BACKEND) is None, "its backend is gone")
    with pytest.raises(Empty):
        heard.get_nowait()


def test_a_stop_while_it_waits_for_its_next_try_is_as_good_as_any_other(heard, monkeypatch):
    def fail(_wrapper):
        raise RuntimeError("the vault is away")

    monkeypatch.setattr(DatabaseWrapper, "get_connection_params", fail)
    for _ in range(100):
        with listening(heard) as listener:
            wait_until(lambda listener=listener: listener._is_lost, "its first try failed")
    listener.stop()
