"""Cancel of running jobs: seen soon, obeyed by any handler or carried out without it, and never overwritten (B094)."""

import hashlib
import threading
import time

import pytest
from django.db import connection, transaction

from django_pgbroker import CancelResult, JobFinished, JobState, JobStopped, Snooze, StopKind, cancel_job
from django_pgbroker.domain.states import Outcome
from django_pgbroker.models import ArchivedJob, Execution, Job
from tests.maintenance.waiting import wait_until

GRACE_SECONDS = 0.6


@pytest.fixture(autouse=True)
def short_grace(settings):
    settings.PGBROKER = {"POLL_MAX_SECONDS": 0.1, "DRAIN_SECONDS": 10, "STOP_GRACE_SECONDS": GRACE_SECONDS}


def end_of(handle):
    """How a job ended, and how its last execution did."""
    wait_until(lambda: ArchivedJob.objects.filter(pk=handle.id).exists(), "the job has ended")
    archived = ArchivedJob.objects.get(pk=handle.id)
    return JobState(archived.state), Outcome(Execution.objects.filter(job_id=handle.id).latest("lease_token").outcome)


CANCELLED = (JobState.CANCELLED, Outcome.CANCELLED)


def test_a_handler_that_asks_ends_as_it_likes_and_its_job_is_cancelled_with_who_and_why(declare, start, gate):
    asked = []

    @declare()
    def patient(ctx):
        gate.wait()
        wait_until(ctx.should_stop, "it is told")
        asked.append(ctx.id)
        ctx.raise_if_stopped()

    handle = patient.enqueue()
    start()
    gate.wait_until_arrived()
    gate.open()
    assert handle.cancel(actor="ada", reason="wrong customer") is CancelResult.REQUESTED
    assert end_of(handle) == CANCELLED
    assert asked == [handle.id]
    assert ArchivedJob.objects.get().reason == "cancelled by ada: wrong customer"


def test_it_is_heard_at_once_not_with_the_next_heartbeat(declare, start, gate, settings, rows):
    settings.PGBROKER = {**settings.PGBROKER, "LEASE_SECONDS": 600, "HEARTBEAT_SECONDS": 120}
    told_after = []

    @declare()
    def patient(ctx):
        gate.wait()
        began = time.monotonic()
        wait_until(ctx.should_stop, "it is told", seconds=20)
        told_after.append(time.monotonic() - began)

    handle = patient.enqueue()
    start()
    gate.wait_until_arrived()
    listening = "select count(*) from pg_stat_activity where datname = current_database() and query like 'listen %%'"
    wait_until(lambda: rows.one(listening), "it listens")
    gate.open()
    handle.cancel(actor="ada")
    wait_until(lambda: told_after, "it was told")
    assert told_after[0] < 10


def loop_in_python():
    while True:
        pass


def loop_over_sleeps():
    while True:
        time.sleep(0.01)


def wait_in_sql():
    with connection.cursor() as cursor:
        cursor.execute("select pg_sleep(60)")


def wait_in_sql_and_swallow():
    while True:
        try:
            with connection.cursor() as cursor:
                cursor.execute("select pg_sleep(60)")
        except Exception:
            connection.close()


def write_and_wait_in_a_transaction():
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("create table pgbroker_never_committed ()")
        cursor.execute("select pg_sleep(60)")


LOOPS = [loop_in_python, loop_over_sleeps, wait_in_sql, wait_in_sql_and_swallow, write_and_wait_in_a_transaction]


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_handler_that_never_asks_is_stopped_and_its_slot_and_connections_are_fit_for_the_next(
    declare, start, gate, loop, rows
):
    @declare()
    def stubborn():
        gate.wait()
        loop()

    @declare()
    def next_one():
        with connection.cursor() as cursor:
            cursor.execute("select 42")
            return cursor.fetchone()[0]

    handle = stubborn.enqueue()
    worker = start(concurrency=1).worker
    gate.wait_until_arrived()
    gate.open()
    wait_until(worker._pools.running_ids, "it runs")
    handle.cancel(actor="ada")
    assert end_of(handle) == CANCELLED
    following = next_one.enqueue()
    wait_until(lambda: following.status() is JobState.COMPLETED, "the slot goes on")
    assert following.result() == 42
    assert worker._pools.hung_count == 0
    assert rows.one("select count(*) from pg_class where relname = 'pgbroker_never_committed'") == 0


def test_a_handler_in_c_code_is_given_up_and_its_slot_replaced_and_its_late_end_changes_nothing(declare, start, caplog):
    begun, may_end = threading.Event(), threading.Event()

    @declare()
    def deaf():
        begun.set()
        may_end.wait(20)  # waits in C: no exception is raised in it before it returns
        hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 1)
        return "too late"

    @declare()
    def next_one():
        return 1

    handle = deaf.enqueue()
    worker = start(concurrency=1, max_hung=2).worker
    assert begun.wait(10)
    handle.cancel(actor="ada")
    assert end_of(handle) == CANCELLED
    following = next_one.enqueue()
    wait_until(lambda: following.status() is JobState.COMPLETED, "the slot was replaced")
    assert worker._pools.hung_count == 1
    assert "handler.abandoned" in [getattr(record, "event", "") for record in caplog.records]
    may_end.set()
    wait_until(lambda: worker._pools.hung_count == 0, "its thread has ended")
    assert end_of(handle) == CANCELLED
    assert Execution.objects.filter(job_id=handle.id).count() == 1


@pytest.mark.parametrize("ending", ["succeeds", "fails", "snoozes"])
def test_b094_whatever_the_handler_comes_to_after_the_cancel_the_job_is_cancelled_and_not_tried_again(
    declare, start, gate, ending, settings
):
    """(a) it succeeds, (b) it fails: the execution tells what it came to, the job what was asked."""
    settings.PGBROKER = {**settings.PGBROKER, "LISTEN": False}  # the handler ends before it can be told

    @declare(max_attempts=5)
    def decided():
        gate.wait()
        match ending:
            case "succeeds":
                return "done"
            case "fails":
                raise ValueError("broken")

        raise Snooze(60)

    handle = decided.enqueue()
    start()
    gate.wait_until_arrived()
    handle.cancel(actor="ada")
    gate.open()
    expected = {"succeeds": Outcome.COMPLETED, "fails": Outcome.FAILED, "snoozes": Outcome.SNOOZED}[ending]
    assert end_of(handle) == (JobState.CANCELLED, expected)
    assert not Job.objects.exists()
    with pytest.raises(JobFinished, match="is cancelled already"):
        cancel_job(handle.id, actor="ada")


def test_a_drained_worker_does_not_bring_a_cancelled_job_back(declare, start, gate):
    @declare()
    def slow(ctx):
        gate.wait()

    handle = slow.enqueue()
    worker = start()
    gate.wait_until_arrived()
    worker.worker.stopping.request_drain()
    handle.cancel(actor="ada")
    gate.open()
    worker.join()
    assert end_of(handle)[0] is JobState.CANCELLED


def test_the_stop_says_its_kind(declare, start, gate):
    kinds = []

    @declare()
    def curious(ctx):
        gate.wait()
        wait_until(ctx.should_stop, "it is told")
        try:
            ctx.raise_if_stopped()
        except JobStopped as stopped:
            kinds.append(stopped.kind)
            raise

    handle = curious.enqueue()
    start()
    gate.wait_until_arrived()
    gate.open()
    handle.cancel(actor="ada")
    end_of(handle)
    assert kinds == [StopKind.CANCELLED]
