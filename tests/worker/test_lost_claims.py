"""What a worker does with claims that are not its own any more, and with rows that others hold."""

import logging
import os
import socket

import pytest
from django.db import transaction

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import Execution, Job
from django_pgbroker.runtime.database_clock import DatabaseClock
from django_pgbroker.store.claim import claim_jobs
from django_pgbroker.store.reclaim import reclaim_jobs
from django_pgbroker.worker.lease_keeper import LeaseKeeper
from tests.maintenance.waiting import wait_until

QUICK_LEASES = {
    "POLL_MIN_SECONDS": 0.001, "POLL_MAX_SECONDS": 0.01, "LEASE_SECONDS": 4, "HEARTBEAT_SECONDS": 1, "DRAIN_SECONDS": 1,
}  # fmt: skip

TURN = "datname = current_database() and application_name like 'pgbroker worker%%'"


@pytest.fixture(autouse=True)
def quick_leases(settings):
    settings.PGBROKER = QUICK_LEASES


def lost(caplog):
    return [record.fields["token"] for record in caplog.records if getattr(record, "event", None) == "lease.lost"]


def events(caplog):
    return [getattr(record, "event", None) for record in caplog.records]


def wait_for_a_turn_at_a_lock(rows):
    waiting = f"select count(*) from pg_stat_activity where {TURN} and wait_event_type = 'Lock'"
    wait_until(lambda: rows.one(waiting), "a turn waits for the lock")


def test_a_verdict_that_waits_for_a_lost_claim_does_not_end_the_next_claim_of_the_job(
    declare, start, gate, rival, rows
):
    @declare()
    def quick():
        gate.wait()

    handle = quick.enqueue()
    worker = start(concurrency=2).worker
    gate.wait_until_arrived()
    with rival.transaction():
        rival.connection.execute("update pgbroker.job set lease_expires_at = now() - interval '1 s'")
        assert [taken.id for taken in reclaim_jobs(rival, batch=10)] == [handle.id]
        rival.connection.execute("update pgbroker.job set state = 0, available_at = now(), claim_order = now()")
        gate.open()
        wait_until(lambda: worker._busy_pace.seconds > 0.1, "turns are so far apart that each looks for jobs as well")
        # what a turn asks between its acknowledge, which finds the row busy, and its claim, which gets it
        rival.connection.execute("lock table pgbroker.job_dependency in access exclusive mode")
        wait_for_a_turn_at_a_lock(rows)
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the job is done")
    outcomes = Execution.objects.order_by("lease_token").values_list("outcome", flat=True)
    assert list(outcomes) == [Outcome.LOST, Outcome.COMPLETED]


def test_the_keeper_tells_which_claim_is_lost_not_only_which_job(declare, gateway, rival, rows):
    @declare()
    def slow():
        """Never runs."""

    handle = slow.enqueue()
    told = []
    queue_id, type_id = rows.one("select queue_id from pgbroker.job"), rows.one("select job_type_id from pgbroker.job")
    wanted = {"queue_id": queue_id, "job_type_ids": [type_id], "batch": 1, "lease_seconds": 60, "worker_id": 1}
    [old] = claim_jobs(gateway, **wanted)
    rows.run("update pgbroker.job set state = 0, lease_token = null")
    [new] = claim_jobs(rival, **wanted)
    keeper = LeaseKeeper(
        "default", 1, "test", lease_seconds=60, heartbeat_seconds=12, held=lambda: [old], running_ids=set,
        capacity=lambda: 1, on_lost=lambda *claim: told.append(claim), on_cancelled=told.append,
        on_orders=lambda orders: None, clock=DatabaseClock(),
    )  # fmt: skip
    keeper.start()
    wait_until(lambda: told, "the keeper has renewed")
    keeper.stop()
    keeper.join(10)
    assert told == [(handle.id, old.lease_token)]
    assert new.lease_token > old.lease_token


def test_a_turn_that_goes_on_in_the_server_after_its_connection_was_lost_leaves_no_claim_behind(
    declare, start, rows, rival, caplog
):
    ran = []

    @declare(max_attempts=1)
    def quick(number):
        ran.append(number)

    def enqueue(numbers):
        with transaction.atomic():
            return [quick.enqueue(number=number) for number in numbers]

    worker = start(concurrency=4).worker
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        with rival.transaction():
            rival.connection.execute("lock table pgbroker.execution in access exclusive mode")
            enqueue(range(4))
            wait_for_a_turn_at_a_lock(rows)
            enqueue(range(4, 12))
            with socket.socket(fileno=os.dup(worker._session.gateway.connection.fileno())) as cut:
                cut.shutdown(socket.SHUT_RDWR)
            wait_until(lambda: "worker.database_lost" in events(caplog), "the worker has noticed")
            wait_for_a_turn_at_a_lock(rows)
        wait_until(lambda: not Job.objects.exists(), "all have finished")
    assert sorted(ran) == list(range(12))
    assert set(Execution.objects.values_list("outcome", flat=True)) == {Outcome.COMPLETED}
    assert lost(caplog) == []


def test_a_row_that_somebody_holds_is_not_asked_for_without_pause_nor_waited_for_after_the_drain(
    declare, start, gate, rival, caplog
):
    @declare()
    def quick():
        gate.wait()

    quick.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    with caplog.at_level(logging.INFO, "django_pgbroker"), rival.transaction():
        rival.connection.execute("select 1 from pgbroker.job for update")
        gate.open()
        wait_until(lambda: worker.worker._busy_pace.seconds > 0.2, "it asks less and less often")
        assert worker.drain() == 1, "something was left to its lease"
    assert Job.objects.get().state == JobState.RUNNING
    assert "job.left_behind" in events(caplog)
