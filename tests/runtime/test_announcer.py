"""NOTIFY after the commit, from a thread, coalesced with a leading and a trailing edge, and never in the way."""

import os
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from django.core import mail
from django.db import connection, transaction

from django_pgbroker import enqueue, job, pause_queue, resume_queue
from django_pgbroker.runtime.announcer import (
    IDLE_SECONDS_IN_TESTS,
    WINDOW_SECONDS,
    announce,
    announce_on_commit,
    close_announcer,
    flush_announcements,
)
from django_pgbroker.runtime.connections import open_connection
from django_pgbroker.runtime.listener import CHANNEL
from tests.maintenance.waiting import wait_until


@job("tests.announcer.work")
def work() -> None: ...


ANNOUNCERS = "from pg_stat_activity where application_name = 'pgbroker announcer' and datname = current_database()"


class Undo(Exception):
    """Ends an atomic block with a rollback."""


class Ear:
    """Listens as a worker does."""

    def __init__(self, own):
        self.own = own
        own.execute(f"listen {CHANNEL}")

    def hear(self, seconds=5.0):
        """The next announced queue, or None."""
        return next((notify.payload for notify in self.own.notifies(timeout=seconds, stop_after=1)), None)

    def hear_all(self):
        """Everything announced so far: what this process is about to send is sent first."""
        assert flush_announcements(10)
        self.own.execute("select pg_notify(%s, 'end')", [CHANNEL])
        heard = []
        for notify in self.own.notifies(timeout=10):
            if notify.payload == "end":
                return heard
            heard.append(notify.payload)
        raise AssertionError(f"the end was never heard, only {heard}")


@pytest.fixture
def ear(broker_database):
    connection.ensure_connection()
    with open_connection("default", "ear") as own:
        yield Ear(own)


def test_a_job_in_autocommit_is_announced_by_the_name_of_its_queue(ear):
    work.using(queue="critical").enqueue()

    assert ear.hear() == "critical"


def test_a_job_is_announced_after_the_commit_and_not_before(ear):
    with transaction.atomic():
        work.enqueue()
        assert ear.hear_all() == []

    assert ear.hear() == "default"


def test_a_rollback_announces_nothing(ear):
    with suppress(Undo), transaction.atomic():
        work.enqueue()
        raise Undo

    assert ear.hear_all() == []


def test_a_savepoint_that_is_rolled_back_announces_nothing(ear):
    with transaction.atomic(), suppress(Undo), transaction.atomic():
        work.enqueue()
        raise Undo

    assert ear.hear_all() == []


def test_no_notify_is_sent_on_the_callers_connection(ear):
    with transaction.atomic():
        work.enqueue()
    assert ear.hear() == "default"

    pids = [notify.pid for notify in announced_again(ear)]
    assert connection.connection.info.backend_pid not in pids


def announced_again(ear):
    work.enqueue()
    return list(ear.own.notifies(timeout=5, stop_after=1))


def test_a_burst_is_few_announcements_and_its_last_job_is_among_them(ear):
    began = time.monotonic()
    announce("default", "default")
    assert ear.hear() == "default"
    for _ in range(500):
        announce("default", "default")
    heard = ear.hear_all()
    windows = (time.monotonic() - began) / WINDOW_SECONDS

    assert 1 <= len(heard) <= windows + 1


def test_queues_are_announced_each_by_its_name(ear):
    for queue in ("a", "b", "a", "c"):
        announce("default", queue)

    assert set(ear.hear_all()) == {"a", "b", "c"}


def test_a_manual_transaction_announces_nothing_since_nobody_knows_its_commit(ear):
    connection.set_autocommit(False)
    try:
        work.enqueue()
        connection.commit()
    finally:
        connection.set_autocommit(True)

    assert ear.hear_all() == []


def test_a_raw_begin_announces_nothing_since_nobody_knows_its_commit(ear):
    with connection.cursor() as cursor:
        cursor.execute("begin")
        work.enqueue()
        cursor.execute("commit")

    assert ear.hear_all() == []


def test_listening_may_be_switched_off(ear, settings):
    settings.PGBROKER = {"LISTEN": False}

    work.enqueue()

    assert ear.hear_all() == []


def test_a_resumed_queue_is_announced(ear):
    work.enqueue()
    pause_queue("default", actor="ada")
    ear.hear_all()

    resume_queue("default", actor="ada")

    assert ear.hear() == "default"


def test_the_connection_and_the_thread_end_when_there_is_no_work(ear):
    announce("default", "default")
    assert ear.hear() == "default"

    wait_until(lambda: ear.own.execute(f"select count(*) {ANNOUNCERS}").fetchone() == (0,), "it is closed")


def test_outside_of_a_test_run_the_connection_waits_for_the_next_announcement_until_it_is_closed(ear, monkeypatch):
    monkeypatch.delattr(mail, "outbox")
    announce("default", "default")
    assert ear.hear() == "default"
    [first] = ear.own.execute(f"select pid {ANNOUNCERS}").fetchall()
    time.sleep(2 * IDLE_SECONDS_IN_TESTS)  # the pause is the case: a connection that ends too soon would be gone

    announce("default", "default")
    assert ear.hear() == "default"
    assert ear.own.execute(f"select pid {ANNOUNCERS}").fetchall() == [first]

    assert close_announcer(10)
    # the server's process ends a moment after its connection
    wait_until(lambda: ear.own.execute(f"select count(*) {ANNOUNCERS}").fetchone() == (0,), "it is closed")


def test_it_begins_again_after_it_has_ended(ear):
    for _ in range(2):
        announce("default", "default")
        assert ear.hear() == "default"
        assert close_announcer(10)


def test_a_killed_connection_costs_at_most_an_announcement(ear):
    announce("default", "first")
    assert ear.hear() == "first"
    ear.own.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pgbroker announcer'"
    )

    announce("default", "lost, perhaps")
    flush_announcements(10)
    announce("default", "second")

    heard = ear.hear(10)
    assert (heard if heard == "second" else ear.hear(10)) == "second"


def test_an_alias_that_cannot_be_reached_never_harms_the_caller(ear):
    announce("no such alias", "default")
    work.enqueue()

    assert ear.hear() == "default"


def test_a_hook_of_somebody_else_that_fails_does_not_cost_the_announcement(ear):
    def fail():
        raise RuntimeError("a hook")

    with transaction.atomic():
        transaction.on_commit(fail, robust=True)
        announce_on_commit("default", "default")

    assert ear.hear() == "default"


@pytest.mark.filterwarnings("ignore:.*fork.. may lead to deadlocks:DeprecationWarning")
def test_a_forked_child_announces_by_itself_and_leaves_the_parents_connection_alone(ear):
    announce("default", "parent")
    assert ear.hear() == "parent"

    child = os.fork()
    if child == 0:
        try:
            announce("default", "child")
            os._exit(0 if flush_announcements(10) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert ear.hear() == "child"
    announce("default", "parent")
    assert ear.hear() == "parent"


SHORT_PROCESS = """
import django
django.setup()
from django.db import connections
from django_pgbroker.runtime.announcer import announce
import os
connections["default"].settings_dict.update(NAME=os.environ["TEST_NAME"])
announce("default", "short")
"""


def test_a_process_that_ends_at_once_still_announces(ear):
    settings = connection.settings_dict
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "example_project.settings", "TEST_NAME": settings["NAME"]}

    subprocess.run([sys.executable, "-c", SHORT_PROCESS], env=environment, check=True, timeout=60)

    assert ear.hear() == "short"


def test_an_enqueue_by_name_is_announced_too(ear):
    enqueue("tests.announcer.work", queue="named")

    assert ear.hear() == "named"
