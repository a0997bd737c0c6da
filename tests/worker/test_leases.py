"""Leases are kept while a job runs, however long, and a claim that was lost can write nothing (B040, B050, B062)."""

import logging
import threading

import pytest
from django.db import transaction

from django_pgbroker import pause_queue
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution, Job
from django_pgbroker.store.reclaim import reclaim_jobs
from tests.maintenance.waiting import wait_until

QUICK_LEASES = {"POLL_MAX_SECONDS": 0.1, "LEASE_SECONDS": 2, "HEARTBEAT_SECONDS": 0.5, "DRAIN_SECONDS": 10}

BACKENDS = "select pid from pg_stat_activity where datname = current_database() and application_name like "
HEARTBEAT = f"{BACKENDS} 'pgbroker heartbeat%%'"
TURNS = f"{BACKENDS} 'pgbroker worker%%'"


@pytest.fixture(autouse=True)
def quick_leases(settings):
    settings.PGBROKER = QUICK_LEASES


def events(caplog, *names):
    return [record.event for record in caplog.records if getattr(record, "event", None) in names]


@pytest.fixture
def lose(rows):
    """Has another process take a job back, as if its worker had been silent for too long."""

    def lose(handle):
        def reclaim():
            rows.run("update pgbroker.job set lease_expires_at = now() - interval '1 s' where id = %s", handle.id)
            return [taken.id for taken in reclaim_jobs(rows.gateway, batch=10)] == [handle.id]

        wait_until(reclaim, "the job is taken back, although its worker may just renew the lease")

    return lose


def outcomes(handle):
    found = Execution.objects.filter(job_id=handle.id).order_by("lease_token")
    return [Outcome(execution.outcome) for execution in found]


def test_a_job_that_outlives_several_leases_runs_once(declare, start, gate, rows):
    @declare()
    def slow():
        gate.wait()

    handle = slow.enqueue()
    start()
    gate.wait_until_arrived()
    first = rows.one("select lease_expires_at from pgbroker.job")
    renewed = "select lease_expires_at >= %s::timestamptz + interval '2.5 s' from pgbroker.job"
    wait_until(lambda: rows.one(renewed, first), "more than one lease has passed")
    assert reclaim_jobs(rows.gateway, batch=10) == []
    assert rows.one("select started_at is not null from pgbroker.job")
    gate.open()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it finished")
    assert outcomes(handle) == [Outcome.COMPLETED]


def test_claims_that_wait_behind_a_stuck_handler_go_back_uncounted_and_run_elsewhere(declare, start, gate, rows):
    @declare()
    def quick(number):
        if number == 300:
            gate.wait()

    with transaction.atomic():
        for number in range(400):
            quick.enqueue(number=number)
    start(concurrency=1)
    gate.wait_until_arrived()
    wait_until(lambda: rows.one("select count(*) from pgbroker.job where state = 1") == 1, "only what runs is held")
    start(concurrency=1)
    wait_until(lambda: rows.one("select count(*) from pgbroker.job") == 1, "the other worker ran all the others")
    assert rows.one("select count(*) from pgbroker.execution where attempt = 1 and outcome = 1") == 399


def test_a_renewal_whose_connection_was_cut_is_tried_again_and_the_job_runs_once(declare, start, gate, rows, caplog):
    @declare()
    def slow():
        gate.wait()

    handle = slow.enqueue()
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        start()
        gate.wait_until_arrived()
        for _ in range(2):
            wait_until(lambda: rows.one(HEARTBEAT), "the heartbeat is connected")
            rows.run(f"select pg_terminate_backend(pid, 5000) from ({HEARTBEAT}) as victim")
        wait_until(lambda: "lease.renewal_resumed" in events(caplog, "lease.renewal_resumed"), "it renews again")
        expires = rows.one("select lease_expires_at from pgbroker.job")
        wait_until(lambda: rows.one("select lease_expires_at > %s from pgbroker.job", expires), "it really does")
        assert reclaim_jobs(rows.gateway, batch=10) == []
        gate.open()
        wait_until(lambda: handle.status() is JobState.COMPLETED, "it finished")
    assert outcomes(handle) == [Outcome.COMPLETED]
    assert "lease.renewal_failed" in events(caplog, "lease.renewal_failed")
    assert events(caplog, "lease.lost") == []


def test_one_job_row_that_somebody_holds_does_not_stall_the_other_leases(declare, start, gate, rows, rival):
    @declare()
    def slow():
        gate.wait()

    held, other = slow.enqueue(), slow.enqueue()
    start(concurrency=2)
    gate.wait_until_arrived(2)
    with rival.transaction():
        rival.connection.execute("select 1 from pgbroker.job where id = %s for update", [held.id])
        before = rows.one("select lease_expires_at from pgbroker.job where id = %s", other.id)
        renewed = "select lease_expires_at > %s::timestamptz from pgbroker.job where id = %s"
        for _ in range(2):
            wait_until(lambda before=before: rows.one(renewed, before, other.id), "the other lease is renewed")
            before = rows.one("select lease_expires_at from pgbroker.job where id = %s", other.id)
    gate.open()
    wait_until(lambda: not Job.objects.exists(), "both finished")
    assert outcomes(held) == outcomes(other) == [Outcome.COMPLETED]


def test_a_lost_lease_is_told_to_the_handler_whose_verdict_then_changes_nothing(declare, start, gate, lose, caplog):
    told = threading.Event()

    @declare(queue="lost")
    def slow(ctx):
        gate.wait()
        wait_until(ctx.should_stop, "the handler is told")
        told.set()
        return "of a zombie"

    handle = slow.enqueue()
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        worker = start("lost")
        gate.wait_until_arrived()
        pause_queue("lost", actor="test")
        lose(handle)
        gate.open()
        wait_until(told.is_set, "the handler ended")
        wait_until(lambda: len(events(caplog, "lease.lost")) == 2, "the loss and the refusal are logged")
        worker.drain()
    assert handle.status() in {JobState.PENDING, JobState.SCHEDULED}
    assert outcomes(handle) == [Outcome.LOST]
    lost = [record for record in caplog.records if getattr(record, "event", None) == "lease.lost"]
    assert {record.fields["job"] for record in lost} == {handle.id}
    assert "completed was refused" in lost[-1].getMessage()


def test_a_failure_of_a_lost_claim_burns_no_attempt_of_the_next_one(declare, start, gate, lose):
    @declare(queue="lost", max_attempts=2)
    def slow():
        gate.wait()
        raise ValueError("of a zombie")

    handle = slow.enqueue()
    worker = start("lost")
    gate.wait_until_arrived()
    pause_queue("lost", actor="test")
    lose(handle)
    gate.open()
    worker.drain()
    assert Job.objects.get(pk=handle.id).attempt == 1
    assert outcomes(handle) == [Outcome.LOST]


def test_a_verdict_that_comes_while_another_worker_runs_the_job_leaves_that_claim_alone(declare, start, lose, caplog):
    runs, let_go = [], [threading.Event(), threading.Event()]

    @declare()
    def slow():
        number = len(runs)
        runs.append(number)
        assert let_go[number].wait(20)
        return f"run {number}"

    handle = slow.enqueue()
    start(concurrency=1)
    wait_until(lambda: runs == [0], "it runs")
    lose(handle)
    start(concurrency=1)
    wait_until(lambda: runs == [0, 1], "another worker runs it")
    token = Job.objects.get(pk=handle.id).lease_token
    let_go[0].set()
    wait_until(lambda: "completed was refused" in caplog.text, "the verdict of the first run is refused")
    job = Job.objects.get(pk=handle.id)
    assert (job.state, job.lease_token) == (JobState.RUNNING, token)
    let_go[1].set()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the second run counts")
    assert handle.result() == "run 1"
    assert outcomes(handle) == [Outcome.LOST, Outcome.COMPLETED]


def test_a_worker_that_claims_a_job_again_which_it_lost_itself_takes_the_verdict_of_the_second_run_only(
    declare, start, lose, caplog, settings
):
    # The next heartbeat is far away: only the second claim tells the worker that the first one is lost.
    settings.PGBROKER = {"POLL_MAX_SECONDS": 0.1}
    runs, let_go = [], [threading.Event(), threading.Event()]
    stops = {}

    @declare()
    def slow(ctx):
        number = len(runs)
        runs.append(ctx.lease_token)
        assert let_go[number].wait(20)
        stops[number] = ctx.should_stop()
        return f"run {number}"

    handle = slow.enqueue()
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        worker = start(concurrency=2)
        wait_until(lambda: len(runs) == 1, "it runs")
        lose(handle)
        wait_until(lambda: len(runs) == 2, "the same worker runs it again", seconds=20)
        let_go[0].set()
        wait_until(lambda: 0 in stops, "the first run ended")
        wait_until(lambda: events(caplog, "lease.lost"), "its verdict is refused")
        assert handle.status() is JobState.RUNNING
        let_go[1].set()
        wait_until(lambda: handle.status() is JobState.COMPLETED, "the second run counts")
        worker.drain()
    assert handle.result() == "run 1"
    assert outcomes(handle) == [Outcome.LOST, Outcome.COMPLETED]
    assert stops == {0: True, 1: False}


def test_both_verdicts_of_a_job_that_ran_twice_here_may_come_at_the_same_moment(declare, start, lose, gate):
    runs = []

    @declare()
    def slow():
        runs.append(1)
        gate.wait()
        return len(runs)

    handle = slow.enqueue()
    worker = start(concurrency=2)
    gate.wait_until_arrived()
    lose(handle)
    gate.wait_until_arrived()
    gate.open()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it is done")
    assert worker.drain() == 0
    assert outcomes(handle) == [Outcome.LOST, Outcome.COMPLETED]


def test_a_verdict_whose_row_somebody_holds_is_recorded_when_the_row_is_free(declare, start, gate, rows, rival):
    @declare()
    def slow():
        gate.wait()
        return "kept"

    handle, other = slow.enqueue(), slow.enqueue()
    start(concurrency=2)
    gate.wait_until_arrived(2)
    with rival.transaction():
        rival.connection.execute("select 1 from pgbroker.job where id = %s for update", [handle.id])
        gate.open()
        wait_until(lambda: other.status() is JobState.COMPLETED, "its neighbour is recorded")
        assert handle.status() is JobState.RUNNING
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it is recorded")
    assert handle.result() == "kept"
    assert outcomes(handle) == [Outcome.COMPLETED]


def test_a_job_that_ends_while_its_interruption_waits_for_its_row_costs_nobody_anything(
    declare, start, gate, rival, settings
):
    settings.PGBROKER = {**QUICK_LEASES, "DRAIN_SECONDS": 0.1}

    @declare()
    def slow():
        gate.wait()
        return "done after all"

    handle = slow.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    with rival.transaction():
        rival.connection.execute("select 1 from pgbroker.job where id = %s for update", [handle.id])
        worker.worker.stopping.request_drain()
        wait_until(lambda: worker.worker._holdings.has_verdicts or not worker.lives, "the interruption waits")
        gate.open()
        wait_until(lambda: not worker.worker._pools.running_ids(), "the handler ended")
        wait_until(worker.worker._mailbox._items.empty, "the verdict has arrived")
    assert worker.join() == 0
    assert outcomes(handle) in ([Outcome.INTERRUPTED], [Outcome.COMPLETED])
    assert handle.status() in {JobState.PENDING, JobState.COMPLETED}


def test_the_worker_survives_the_loss_of_its_connection_for_turns_and_records_what_ended_meanwhile(
    declare, start, gate, rows, caplog
):
    @declare()
    def slow():
        gate.wait()
        return "kept"

    handle = slow.enqueue()
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        start(concurrency=1)
        gate.wait_until_arrived()
        rows.run(f"select pg_terminate_backend(pid, 5000) from ({TURNS}) as victim")
        gate.open()
        wait_until(lambda: handle.status() is JobState.COMPLETED, "it is recorded on a new connection")
        wait_until(lambda: events(caplog, "worker.database_back"), "the worker says that the database is back")
    assert outcomes(handle) == [Outcome.COMPLETED]
    assert ArchivedJob.objects.get(pk=handle.id).attempt == 1
    assert events(caplog, "worker.database_lost", "worker.database_back") == [
        "worker.database_lost", "worker.database_back",
    ]  # fmt: skip
