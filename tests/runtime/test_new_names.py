"""Names used for the first time get their rows outside the caller's transaction, and block nobody."""

import socket
import threading
from contextlib import contextmanager, suppress

import pytest
from django.db import OperationalError, connection, transaction

from django_pgbroker import EnqueueConflict, enqueue, job
from django_pgbroker.runtime import new_names
from django_pgbroker.runtime.connections import open_connection
from django_pgbroker.runtime.new_names import declare_names
from django_pgbroker.store.errors import BrokerUnavailable


@job("tests.new_names.work")
def work() -> None: ...


class Undo(Exception):
    """Ends an atomic block with a rollback."""


@pytest.fixture
def other(broker_database):
    connection.ensure_connection()
    with open_connection("default", "other") as own:
        yield own


@contextmanager
def no_more_connections():
    """New connections reach a server that never answers, as a pooler that is full; those that are open work on."""
    address = {key: connection.settings_dict[key] for key in ("HOST", "PORT")}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connection.settings_dict.update(HOST="127.0.0.1", PORT=silent.getsockname()[1])
        try:
            yield
        finally:
            connection.settings_dict.update(address)


def names(own, table):
    return {row[0] for row in own.execute(f"select name from pgbroker.{table}").fetchall()}


def test_rows_of_new_names_outlive_the_rollback_of_the_transaction_that_needed_them(other):
    with suppress(Undo), transaction.atomic():
        work.using(queue="fresh", tenant="acme").enqueue()
        raise Undo

    assert "fresh" in names(other, "queue")
    assert "acme" in names(other, "tenant")
    assert "tests.new_names.work" in names(other, "job_type")
    assert other.execute("select count(*) from pgbroker.job").fetchone() == (0,)


def test_in_autocommit_no_second_connection_is_needed(other):
    with no_more_connections():
        handle = work.using(queue="fresh").enqueue()

    assert handle.status().label == "pending"
    assert "fresh" in names(other, "queue")


def test_an_open_transaction_that_used_a_new_name_first_blocks_no_other_first_user(other):
    with transaction.atomic():
        work.using(queue="fresh").enqueue()
        other.execute("set lock_timeout = '100ms'")
        other.execute("insert into pgbroker.queue (name) values ('fresh') on conflict do nothing")

    assert "fresh" in names(other, "queue")


def test_a_new_queue_gets_its_ageing_from_the_settings(other, settings):
    settings.PGBROKER = {"AGEING_SECONDS": 7, "QUEUES": {"default": {}, "slow": {"ageing_seconds": 900}}}

    work.using(queue="slow").enqueue()
    with transaction.atomic():
        work.enqueue()

    ageing = dict(other.execute("select name, ageing_seconds from pgbroker.queue").fetchall())
    assert ageing["slow"] == 900


def test_repeatable_read_with_an_older_snapshot_is_a_conflict_that_a_second_try_settles(other):
    def enqueue_in_snapshot():
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("set transaction isolation level repeatable read")
                cursor.execute("select count(*) from pgbroker.queue")
            return work.using(queue="fresh").enqueue()

    with pytest.raises(EnqueueConflict, match="after the snapshot"):
        enqueue_in_snapshot()
    handle = enqueue_in_snapshot()

    assert other.execute("select id from pgbroker.job").fetchall() == [(handle.id,)]


def test_a_name_held_by_an_open_transaction_is_a_conflict_after_the_lock_time_out(other, monkeypatch):
    monkeypatch.setattr("django_pgbroker.store.names.LOCK_TIMEOUT_MILLISECONDS", 50)

    with other.transaction(force_rollback=True):
        other.execute("insert into pgbroker.queue (name) values ('held')")
        with transaction.atomic(), pytest.raises(EnqueueConflict, match="queue 'held'") as raised:
            work.using(queue="held").enqueue()

    assert raised.value.sqlstate == "55P03"
    assert isinstance(raised.value, OperationalError)


def test_without_a_second_connection_the_error_asks_to_declare_the_name(other, monkeypatch):
    monkeypatch.setattr(new_names, "LIMIT_SECONDS", 0.1)

    with transaction.atomic():
        with no_more_connections(), pytest.raises(BrokerUnavailable, match=r"list the queue in PGBROKER\['QUEUES'\]"):
            work.using(queue="fresh").enqueue()
        work.enqueue()

    assert other.execute("select count(*) from pgbroker.job").fetchone() == (1,)


def test_declared_names_have_rows_before_the_first_job(other, settings):
    settings.PGBROKER = {"QUEUES": {"default": {}, "slow": {"ageing_seconds": 900}}, "ROUTES": {"a.*": "slow"}}

    declare_names("default")
    declare_names("default")

    assert {"default", "slow"} <= names(other, "queue")
    assert "tests.new_names.work" in names(other, "job_type")
    assert "default" in names(other, "tenant")


def test_two_first_users_at_once_both_succeed(other):
    barrier = threading.Barrier(4)
    handles = []

    def use():
        barrier.wait(10)
        try:
            with transaction.atomic():
                handles.append(enqueue("tests.new_names.work", queue="fresh"))
        finally:
            connection.close()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len({handle.id for handle in handles}) == 4
    assert other.execute("select count(*) from pgbroker.queue where name = 'fresh'").fetchone() == (1,)
