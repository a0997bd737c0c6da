"""Time-outs: told apart from all else, retried by policy, and never before their time."""

import time

import pytest

from django_pgbroker import JobState, StopKind
from django_pgbroker.domain.states import Outcome
from django_pgbroker.models import ArchivedJob, Execution
from tests.maintenance.waiting import wait_until

GRACE_SECONDS = 1.0


@pytest.fixture(autouse=True)
def short_grace(settings):
    settings.PGBROKER = {"POLL_MAX_SECONDS": 0.1, "DRAIN_SECONDS": 10, "STOP_GRACE_SECONDS": GRACE_SECONDS}


def outcomes(handle):
    found = Execution.objects.filter(job_id=handle.id).order_by("lease_token")
    return [Outcome(execution.outcome) for execution in found]


def test_an_attempt_that_takes_too_long_is_tried_again_and_then_dead_with_the_reason(declare, run_until_empty):
    attempts = []

    @declare(timeout=1, max_attempts=2)
    def slow(ctx):
        attempts.append(ctx.attempt)
        while True:
            time.sleep(0.01)

    handle = slow.enqueue()
    run_until_empty()
    assert attempts == [1, 2]
    assert handle.status() is JobState.DEAD
    assert outcomes(handle) == [Outcome.TIMED_OUT] * 2
    assert ArchivedJob.objects.get().reason == "longer than its time-out of 1 s"


def test_the_context_says_when_the_time_is_over_and_the_kind_of_the_stop(declare, run_until_empty):
    seen = []

    @declare(timeout=1, max_attempts=1)
    def slow(ctx):
        left = ctx.deadline.timestamp() - time.time()  # the server's clock is this machine's
        wait_until(ctx.should_stop, "it is told")
        seen.append((round(left), ctx._link.find_stop(ctx.lease_token).kind))
        ctx.raise_if_stopped()

    handle = slow.enqueue()
    run_until_empty()
    assert seen == [(1, StopKind.TIMED_OUT)]
    assert outcomes(handle) == [Outcome.TIMED_OUT]


def test_a_handler_that_ends_within_the_grace_has_done_its_work(declare, run_until_empty):
    @declare(timeout=1, max_attempts=1)
    def late(ctx):
        wait_until(ctx.should_stop, "it is told")
        return "just in time"

    handle = late.enqueue()
    run_until_empty()
    assert (handle.status(), handle.result()) == (JobState.COMPLETED, "just in time")


def test_an_error_after_the_time_is_kept_with_the_time_out(declare, run_until_empty):
    @declare(timeout=1, max_attempts=1)
    def failing(ctx):
        wait_until(ctx.should_stop, "it is told")
        raise ValueError("broken by the stop")

    handle = failing.enqueue()
    run_until_empty()
    assert outcomes(handle) == [Outcome.TIMED_OUT]
    assert ArchivedJob.objects.get().error_message == "broken by the stop"


def test_a_deadline_ends_a_running_job_too(declare, run_until_empty):
    @declare(max_attempts=1)
    def slow(ctx):
        wait_until(ctx.should_stop, "it is told")
        ctx.raise_if_stopped()

    handle = slow.using(deadline=1).enqueue()
    run_until_empty()
    assert outcomes(handle) == [Outcome.TIMED_OUT]
    assert ArchivedJob.objects.get().reason == "its deadline has passed"


def test_time_that_a_claim_waits_for_a_slot_does_not_count(declare, start, gate):
    @declare(timeout=1, max_attempts=1)
    def quick():
        return 1

    @declare()
    def gated():
        gate.wait()

    gated.enqueue()
    start(concurrency=1)
    gate.wait_until_arrived()
    handle = quick.enqueue()
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() - begun > 1.5, "longer than the time-out")
    gate.open()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it runs")


def test_a_handler_that_obeys_when_it_has_stalled_has_timed_out_and_spent_an_attempt(
    declare, run_until_empty, settings
):
    settings.PGBROKER = {**settings.PGBROKER, "HEARTBEAT_SECONDS": 0.5, "LEASE_SECONDS": 5}

    @declare(heartbeat_timeout=1, max_attempts=1)
    def stalls(ctx):
        wait_until(ctx.should_stop, "it is told")
        ctx.raise_if_stopped()

    handle = stalls.enqueue()
    run_until_empty()
    assert handle.status() is JobState.DEAD
    assert outcomes(handle) == [Outcome.TIMED_OUT]
    assert ArchivedJob.objects.get().reason == "no heartbeat() came in time"
