"""Renewals that fail, handlers that show no progress, and jobs that are interrupted again and again (B062)."""

import logging
import threading
import time

import pytest
from django.db.backends.postgresql.base import DatabaseWrapper

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution, Job
from django_pgbroker.store.reclaim import reclaim_jobs
from django_pgbroker.worker.lease_trust import LEASES_NOT_KEPT
from django_pgbroker.worker.options import WorkerOptions, parse_queues
from django_pgbroker.worker.worker import Worker
from tests.maintenance.waiting import wait_until
from tests.worker.test_leases import HEARTBEAT, QUICK_LEASES, events, outcomes, quick_leases

__all__ = ["quick_leases"]


@pytest.fixture
def break_renewals(rows, monkeypatch):
    """Has every renewal fail from now on, until ``monkeypatch.undo()``."""
    params = DatabaseWrapper.get_connection_params

    def fail_for_the_keeper(wrapper):
        if threading.current_thread().name == "pgbroker-lease-keeper":
            raise RuntimeError("no connection for the keeper")
        return params(wrapper)

    def break_renewals():
        wait_until(lambda: rows.one(HEARTBEAT), "the heartbeat is connected")
        monkeypatch.setattr(DatabaseWrapper, "get_connection_params", fail_for_the_keeper)
        rows.run(f"select pg_terminate_backend(pid, 5000) from ({HEARTBEAT}) as victim")

    return break_renewals


def test_after_three_failed_renewals_handlers_are_told_while_their_lease_holds_and_the_worker_ends(
    declare, start, gate, rows, break_renewals
):
    told, seen = [], []

    @declare()
    def polite(ctx):
        seen.append(ctx.should_stop())
        gate.wait()
        wait_until(ctx.should_stop, "the handler is told", seconds=10)
        told.append(rows.one("select lease_expires_at > now() from pgbroker.job"))
        return "kept"

    handle = polite.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    break_renewals()
    gate.open()
    assert worker.join() == LEASES_NOT_KEPT
    assert (seen, told) == ([False], [True])
    assert handle.result() == "kept"
    assert rows.one("select stop_reason from pgbroker.worker") == "stopped"


def test_a_handler_that_does_not_stop_is_handed_back_before_its_lease_lapses_and_the_worker_ends(
    declare, start, gate, rows, break_renewals
):
    @declare()
    def deaf():
        gate.wait()

    handle = deaf.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    break_renewals()
    lapses_at = rows.one("select lease_expires_at from pgbroker.job")
    assert worker.join() == LEASES_NOT_KEPT
    assert worker.worker.left_running == 1
    assert handle.status() is JobState.PENDING
    assert outcomes(handle) == [Outcome.INTERRUPTED]
    assert Execution.objects.get().finished_at < lapses_at


def test_a_worker_without_jobs_ends_too_when_only_its_renewals_fail(start, rows, break_renewals):
    worker = start(concurrency=1)
    break_renewals()
    assert worker.join() == LEASES_NOT_KEPT


def test_a_worker_that_hangs_in_a_turn_is_ended_from_outside_before_others_run_what_it_runs(  # noqa: PLR0917
    declare, broker_database, gate, rows, rival, break_renewals, settings
):
    settings.PGBROKER = {**QUICK_LEASES, "LEASE_SECONDS": 4, "HEARTBEAT_SECONDS": 2}
    ended, ended_at = threading.Event(), []

    def end():
        ended_at.append(time.time())
        ended.set()

    @declare()
    def quick():
        gate.wait_until_arrived()

    @declare()
    def slow():
        gate.wait()

    slow.enqueue()
    quick.enqueue()
    worker = Worker(WorkerOptions(parse_queues("default"), 2), on_lapse=end)
    thread = threading.Thread(target=worker.run, daemon=True)
    try:
        with rival.transaction():
            # the acknowledge of the quick one waits for its counter, and the main thread with it
            rival.connection.execute("lock table pgbroker.stat_minute in exclusive mode")
            thread.start()
            hanging = "select count(*) from pg_stat_activity where application_name like 'pgbroker worker%%' "
            wait_until(lambda: rows.one(f"{hanging} and wait_event_type = 'Lock'"), "the turn hangs")
            break_renewals()
            assert ended.wait(15), "nobody ended it"
            assert not worker.stopping.drain.is_set(), "the main thread has noticed nothing"
            assert rows.one("select extract(epoch from min(lease_expires_at)) from pgbroker.job") > ended_at[0]
    finally:
        gate.open()
        worker.stopping.request_drain()
        thread.join(20)
    assert not thread.is_alive()


def test_renewals_that_fail_twice_end_nothing(declare, start, gate, break_renewals, monkeypatch, caplog):  # noqa: PLR0917
    @declare()
    def slow():
        gate.wait()

    handle = slow.enqueue()
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        worker = start(concurrency=1)
        gate.wait_until_arrived()
        break_renewals()
        wait_until(lambda: events(caplog, "lease.renewal_failed"), "one has failed")
        monkeypatch.undo()
        wait_until(lambda: events(caplog, "lease.renewal_resumed"), "it renews again")
        gate.open()
        wait_until(lambda: handle.status() is JobState.COMPLETED, "it finished")
    assert worker.drain() == 0


def test_handlers_that_burn_the_processor_do_not_starve_the_renewals(declare, start, rows, settings):
    # ten of them, and this thread: each hand-over of the interpreter takes a twentieth of a second
    settings.PGBROKER = {**QUICK_LEASES, "LEASE_SECONDS": 6, "HEARTBEAT_SECONDS": 1}
    let_go = threading.Event()

    @declare()
    def burn():
        number = 0
        while not let_go.is_set():
            number += 1

    handles = [burn.enqueue() for _ in range(10)]
    try:
        start(concurrency=10)
        wait_until(lambda: rows.one("select count(*) from pgbroker.job where state = 1") == 10, "all of them burn")
        first = rows.one("select max(lease_expires_at) from pgbroker.job")
        renewed = "select min(lease_expires_at) >= %s::timestamptz + interval '6.5 s' from pgbroker.job"
        wait_until(lambda: rows.one(renewed, first), "more than one lease has passed for each", seconds=40)
        assert rows.one("select count(*) from pgbroker.job where lease_expires_at < now()") == 0
    finally:
        let_go.set()
    wait_until(lambda: not Job.objects.exists(), "all finished")
    assert {tuple(outcomes(handle)) for handle in handles} == {(Outcome.COMPLETED,)}


def test_a_handler_that_shows_progress_keeps_its_lease_and_one_that_stalls_loses_it_and_is_told(
    declare, start, rows, caplog
):
    let_go = threading.Event()
    runs = []

    @declare(heartbeat_timeout=1)
    def diligent(ctx):
        while not let_go.wait(0.05):
            ctx.heartbeat()
        return "kept"

    @declare(heartbeat_timeout=1, max_attempts=2)
    def stuck(ctx):
        runs.append(ctx.attempt)
        if ctx.attempt == 1:
            wait_until(ctx.should_stop, "it is told")
            assert let_go.wait(20)

    kept, lost = diligent.enqueue(), stuck.enqueue()
    start(concurrency=2)
    wait_until(lambda: runs, "it runs")

    def is_taken_back():
        return [taken.id for taken in reclaim_jobs(rows.gateway, batch=10)] == [lost.id]

    wait_until(is_taken_back, "the lease of the stalled one has lapsed")
    assert "lease.stalled" in events(caplog, "lease.stalled")
    assert [record.fields["job"] for record in caplog.records if getattr(record, "event", "") == "lease.stalled"] == [
        lost.id
    ]
    let_go.set()
    wait_until(lambda: lost.status() is JobState.COMPLETED, "the second attempt ran")
    assert kept.result() == "kept"
    assert runs == [1, 2]
    assert outcomes(lost) == [Outcome.LOST, Outcome.COMPLETED]
    assert outcomes(kept) == [Outcome.COMPLETED]


def test_a_job_is_a_dead_letter_when_it_was_interrupted_more_often_than_its_type_allows(declare, start, gate, settings):
    settings.PGBROKER = {**QUICK_LEASES, "DRAIN_SECONDS": 0.05}

    @declare(max_interruptions=1)
    def endless():
        gate.wait()

    handle = endless.enqueue()
    for expected in (JobState.PENDING, JobState.DEAD):
        worker = start(concurrency=1)
        gate.wait_until_arrived()
        assert worker.drain() == 0
        assert handle.status() is expected
    dead = ArchivedJob.objects.get(pk=handle.id)
    assert (dead.interruptions, dead.deaths) == (2, 0)
    assert dead.reason.startswith("interrupted 2 times, 1 allowed")
    assert outcomes(handle) == [Outcome.INTERRUPTED, Outcome.INTERRUPTED]
