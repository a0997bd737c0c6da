"""What operators ask of a worker by its row, how it stops, and what its row says meanwhile."""

import logging
import threading

import pytest
from django.db import transaction
from django.utils import timezone

from django_pgbroker.domain.presence import Presence
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import Execution, Job, Worker
from django_pgbroker.operations.overview import presence_of
from django_pgbroker.operations.workers import (
    drain_worker,
    pause_queue_on_worker,
    stop_worker,
)
from tests.maintenance.waiting import wait_until

QUICK_BEATS = {"POLL_MAX_SECONDS": 0.1, "LEASE_SECONDS": 2, "HEARTBEAT_SECONDS": 0.5, "DRAIN_SECONDS": 10}


@pytest.fixture(autouse=True)
def quick_beats(settings):
    settings.PGBROKER = QUICK_BEATS


@pytest.fixture
def stuck(declare, gate):
    @declare()
    def stuck():
        gate.wait()

    return stuck


def order(rows, column):
    rows.run(f"update pgbroker.worker set {column} = now()")


def test_a_worker_registers_beats_and_says_good_bye(stuck, start, gate, rows):
    handle = stuck.enqueue()
    worker = start("default,mail:5", concurrency=3)
    gate.wait_until_arrived()
    row = Worker.objects.get()
    assert (row.name, row.concurrency, row.heartbeat_seconds) == (worker.worker.options.name, 3, 0.5)
    assert row.queues == {"default": 1, "mail": 5}
    assert row.stopped_at is None
    assert Job.objects.get(pk=handle.id).worker_id == row.id
    assert rows.one("select job_type_id = any (job_type_ids) from pgbroker.job cross join pgbroker.worker")

    wait_until(lambda: Worker.objects.get().running_count == 1, "the row tells what runs")
    later = "select heartbeat_at > %s::timestamptz from pgbroker.worker"
    wait_until(lambda: rows.one(later, row.heartbeat_at), "it beats")
    assert abs(Worker.objects.get().clock_skew_seconds) < 1

    gate.open()
    assert worker.drain() == 0
    row = Worker.objects.get()
    assert (row.stop_reason, row.running_count) == ("stopped", 0)
    assert row.stopped_at is not None


def test_every_start_has_a_row_of_its_own_whatever_its_name(run_until_empty):
    run_until_empty()
    run_until_empty()
    assert Worker.objects.count() == 2
    assert Worker.objects.values("name").distinct().count() == 1


def test_an_order_to_drain_finishes_what_runs_and_claims_nothing_more(stuck, start, gate, rows, caplog):
    running = stuck.enqueue()
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        worker = start(concurrency=1)
        gate.wait_until_arrived()
        order(rows, "drain_requested_at")
        wait_until(lambda: "worker.draining" in caplog.text, "it drains")
        left = stuck.enqueue()
        gate.open()
        assert worker.join() == 0
    assert running.status() is JobState.COMPLETED
    assert left.status() is JobState.PENDING
    assert "an operator asked this worker to drain" in caplog.text
    assert Worker.objects.get().stop_reason == "stopped"


def test_a_worker_that_drains_says_so_at_once_whoever_asked_it(stuck, start, gate, settings, rows):
    settings.PGBROKER = {**QUICK_BEATS, "LEASE_SECONDS": 600, "HEARTBEAT_SECONDS": 300}
    stuck.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    assert presence_of(Worker.objects.get(), timezone.now()) is Presence.ALIVE
    worker.worker.stopping.request_drain()
    wait_until(lambda: Worker.objects.get().draining_at, "it says that it drains, long before its next heartbeat")
    first = Worker.objects.get()
    assert presence_of(first, timezone.now()) is Presence.DRAINING
    worker.worker._keeper.beat_now()
    later = "select heartbeat_at > %s::timestamptz from pgbroker.worker"
    wait_until(lambda: rows.one(later, first.heartbeat_at), "it beats again")
    assert Worker.objects.get().draining_at == first.draining_at
    gate.open()
    assert worker.join() == 0


def test_an_order_to_stop_hands_back_what_runs_at_once_and_uncounted(stuck, start, gate, rows):
    handle = stuck.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    order(rows, "stop_requested_at")
    assert worker.join() == 1
    job = Job.objects.get(pk=handle.id)
    assert (job.state, job.attempt, job.interruptions) == (JobState.PENDING, 0, 1)
    execution = Execution.objects.get()
    assert (execution.outcome, execution.attempt) == (Outcome.INTERRUPTED, 1)
    assert execution.reason == "the worker was stopped at once"
    assert Worker.objects.get().stop_reason == "aborted"


def test_a_drain_tells_the_handlers_to_stop(declare, start):
    begun, told = threading.Event(), []

    @declare()
    def polite(ctx):
        begun.set()
        wait_until(ctx.should_stop, "the handler is told")
        told.append(1)

    handle = polite.enqueue()
    worker = start(concurrency=1)
    wait_until(begun.is_set, "it runs")
    assert worker.drain() == 0
    assert (told, handle.status()) == ([1], JobState.COMPLETED)


def test_a_drain_hands_back_what_has_not_begun_as_if_it_had_never_been_claimed(declare, start, gate, rows, monkeypatch):
    # Otherwise a backlog in which nothing moves would be handed back after a second, drain or not.
    monkeypatch.setattr("django_pgbroker.worker.stations._STALL_SECONDS", 3600)

    @declare()
    def quick(number):
        if number == 300:
            gate.wait()

    with transaction.atomic():
        for number in range(400):
            quick.enqueue(number=number)
    before = dict(Job.objects.values_list("id", "claim_order"))
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    worker.worker.stopping.request_drain()
    wait_until(lambda: rows.one("select count(*) from pgbroker.job where state = 1") == 1, "the rest is handed back")
    left = Job.objects.filter(state=JobState.PENDING)
    assert left.count() == 99
    assert set(left.values_list("attempt", "interruptions", "lease_token")) == {(0, 0, None)}
    assert all(before[job.id] == job.claim_order for job in left)
    gate.open()
    worker.join()
    assert Execution.objects.count() == 301


def test_what_does_not_end_before_the_drain_is_over_is_interrupted_and_may_run_again(
    stuck, start, gate, settings, rows
):
    settings.PGBROKER = {**QUICK_BEATS, "DRAIN_SECONDS": 0.2}
    handle = stuck.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    assert worker.drain() == 0
    job = Job.objects.get(pk=handle.id)
    assert (job.state, job.attempt, job.interruptions) == (JobState.PENDING, 0, 1)
    assert Execution.objects.get().outcome == Outcome.INTERRUPTED

    gate.open()
    start(until_empty=True).join()
    assert handle.status() is JobState.COMPLETED
    assert rows.one("select attempt from pgbroker.archived_job") == 1


def test_a_worker_whose_row_was_deleted_works_on(stuck, start, gate, rows):
    first = stuck.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    rows.run("delete from pgbroker.worker")
    expires = rows.one("select lease_expires_at from pgbroker.job")
    wait_until(lambda: rows.one("select lease_expires_at > %s from pgbroker.job", expires), "its lease is renewed")
    gate.open()
    wait_until(lambda: first.status() is JobState.COMPLETED, "its job is done")
    assert worker.drain() == 0


def test_what_a_stopping_worker_hands_back_is_taken_at_once_by_one_that_would_look_much_later(
    declare, start, settings, gate
):
    settings.PGBROKER = {**QUICK_BEATS, "DRAIN_SECONDS": 0.05}
    runs = []

    @declare()
    def slow():
        runs.append(threading.current_thread())
        if len(runs) == 1:
            gate.wait()

    handle = slow.enqueue()
    stopping = start(concurrency=1)
    gate.wait_until_arrived()
    settings.PGBROKER = {"POLL_MIN_SECONDS": 60, "POLL_MAX_SECONDS": 60}
    start(concurrency=1)
    wait_until(lambda: Worker.objects.filter(stopped_at=None).count() == 2, "the other one is there")
    assert stopping.drain() == 0
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the other one ran it", seconds=20)
    assert outcomes_of(handle) == [Outcome.INTERRUPTED, Outcome.COMPLETED]


def outcomes_of(handle):
    return [Outcome(each.outcome) for each in Execution.objects.filter(job_id=handle.id).order_by("lease_token")]


def worker_id():
    return Worker.objects.get(stopped_at=None).pk


def test_the_verbs_drain_and_stop_a_worker(stuck, start, gate):
    first, second = stuck.enqueue(), None
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    assert drain_worker(worker_id(), actor="ada") is True
    wait_until(lambda: Worker.objects.get().draining_at, "it drains")
    second = stuck.enqueue()
    gate.open()
    assert worker.join() == 0
    assert (first.status(), second.status()) == (JobState.COMPLETED, JobState.PENDING)
    assert worker.worker.is_ordered_away


def test_the_verb_stop_hands_back_what_runs(stuck, start, gate):
    handle = stuck.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    assert stop_worker(worker_id(), actor="ada", reason="it eats memory") is True
    assert worker.join() == 1
    assert handle.status() is JobState.PENDING


def test_an_operator_whose_transaction_stays_open_costs_the_worker_no_lease(stuck, start, gate, rows):
    handle = stuck.enqueue()
    start(concurrency=1)
    gate.wait_until_arrived()
    expires = rows.one("select lease_expires_at from pgbroker.job")
    with transaction.atomic():
        pause_queue_on_worker(worker_id(), "default", actor="ada")
        renewed = "select lease_expires_at > %s::timestamptz + interval '3 s' from pgbroker.job"
        wait_until(lambda: rows.one(renewed, expires), "it is renewed for longer than a lease lasts")
    gate.open()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it finished here")
    assert Execution.objects.count() == 1
