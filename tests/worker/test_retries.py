"""From the first failure to the archive or the dead letters, with the history of every attempt."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_pgbroker import Cancel, Constant, JobFailed, Retry, Snooze
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution, Job
from tests.maintenance.waiting import wait_until


def history(handle):
    return [
        (execution.attempt, Outcome(execution.outcome))
        for execution in Execution.objects.filter(job_id=handle.id).order_by("lease_token")
    ]


def test_a_job_that_fails_for_ever_is_a_dead_letter_with_its_error_and_an_execution_for_each_attempt(
    declare, run_until_empty
):
    @declare(max_attempts=3)
    def fail(order):
        raise ValueError(f"no such order {order}")

    handle = fail.enqueue(order=7)
    run_until_empty()

    assert handle.status() is JobState.DEAD
    dead = ArchivedJob.objects.get(pk=handle.id)
    assert (dead.attempt, dead.max_attempts, dead.reason) == (3, 3, "attempts spent")
    assert (dead.error_class, dead.error_message) == ("builtins.ValueError", "no such order 7")
    assert dead.arguments == {"order": 7}
    assert history(handle) == [(1, Outcome.FAILED), (2, Outcome.FAILED), (3, Outcome.FAILED)]
    last = Execution.objects.filter(job_id=handle.id).latest("lease_token")
    assert last.traceback.startswith("Traceback (most recent call last):")
    assert 'raise ValueError(f"no such order {order}")' in last.traceback
    assert last.fingerprint == dead.fingerprint
    with pytest.raises(JobFailed, match="is dead .*no such order 7"):
        handle.result()
    assert not Job.objects.exists()


def test_a_job_that_succeeds_at_its_second_attempt_is_completed_with_its_result(declare, run_until_empty):
    attempts = []

    @declare()
    def flaky():
        attempts.append(1)
        if len(attempts) < 2:
            raise ConnectionError("try again")
        return {"done": True}

    handle = flaky.enqueue()
    run_until_empty()

    assert handle.result() == {"done": True}
    assert history(handle) == [(1, Outcome.FAILED), (2, Outcome.COMPLETED)]


def test_a_failed_job_waits_as_its_retry_policy_says(declare, start):
    @declare(retry=Constant(600))
    def fail():
        raise ValueError("later")

    handle = fail.enqueue()
    start()
    wait_until(lambda: handle.status() is JobState.SCHEDULED, "it waits")
    job = Job.objects.get(pk=handle.id)
    wait = job.available_at - timezone.now()
    assert timedelta(seconds=570) < wait <= timedelta(seconds=601)
    assert (job.attempt, job.lease_token, job.worker_id) == (1, None, None)


def test_a_job_that_waits_runs_again_as_soon_as_it_is_due(declare, start, settings):
    settings.PGBROKER = {"POLL_MIN_SECONDS": 60, "POLL_MAX_SECONDS": 60}
    attempts = []

    @declare(retry=Constant(0.3))
    def flaky():
        attempts.append(1)
        if len(attempts) < 3:
            raise ValueError("again")

    handle = flaky.enqueue()
    start()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "two waits of 0.3 s are over", seconds=10)


def test_a_snooze_counts_no_attempt_and_leaves_an_execution(declare, run_until_empty):
    runs = []

    @declare(max_attempts=1)
    def patient():
        runs.append(1)
        if len(runs) < 3:
            raise Snooze(1, "not yet")

    handle = patient.enqueue()
    run_until_empty()
    assert handle.status() is JobState.COMPLETED
    assert ArchivedJob.objects.get(pk=handle.id).attempt == 1
    assert history(handle) == [(1, Outcome.SNOOZED)] * 2 + [(1, Outcome.COMPLETED)]


def test_a_cancel_by_the_handler_ends_the_job_with_its_reason(declare, run_until_empty):
    @declare()
    def withdraw():
        raise Cancel("order withdrawn")

    handle = withdraw.enqueue()
    run_until_empty()
    cancelled = ArchivedJob.objects.get(pk=handle.id)
    assert (cancelled.state, cancelled.reason, cancelled.error_class) == (JobState.CANCELLED, "order withdrawn", None)
    assert history(handle) == [(1, Outcome.CANCELLED)]


def test_a_retry_by_the_handler_counts_and_ends_in_the_dead_letters(declare, run_until_empty):
    @declare(max_attempts=2)
    def limited():
        raise Retry(0, "rate limit")

    handle = limited.enqueue()
    run_until_empty()
    dead = ArchivedJob.objects.get(pk=handle.id)
    assert (dead.state, dead.attempt, dead.reason) == (JobState.DEAD, 2, "rate limit")


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def exit_quietly():
    raise SystemExit(0)


def exhaust_memory():
    raise MemoryError


def nul_in_text():
    raise ValueError("a \x00 b")


def surrogate_in_text():
    raise ValueError("a \ud800 b")


def no_text():
    raise Unprintable


def endless_text():
    raise ValueError("x" * 1_000_000)


def test_errors_that_are_hard_to_store_are_stored_and_the_worker_lives(declare, run_until_empty):
    handlers = [exit_quietly, exhaust_memory, nul_in_text, surrogate_in_text, no_text, endless_text]
    handles = {handler.__name__: declare(max_attempts=1)(handler).enqueue() for handler in handlers}
    good = [declare(f"tests.good{number}")(lambda: "done").enqueue() for number in range(4)]

    assert run_until_empty(concurrency=2) == 0

    dead = {name: ArchivedJob.objects.get(pk=handle.id) for name, handle in handles.items()}
    assert {job.state for job in dead.values()} == {JobState.DEAD}
    assert dead["exit_quietly"].error_class == "builtins.SystemExit"
    assert dead["nul_in_text"].error_message == r"a \x00 b"
    assert dead["surrogate_in_text"].error_message == r"a \ud800 b"
    assert len(dead["endless_text"].error_message) == 2000
    assert [handle.result() for handle in good] == ["done"] * 4


def test_a_result_that_cannot_be_stored_completes_the_job_and_says_so(declare, run_until_empty):
    handle = declare("tests.odd")(lambda: {1, 2}).enqueue()
    run_until_empty()
    done = ArchivedJob.objects.get(pk=handle.id)
    assert (done.state, done.result) == (JobState.COMPLETED, None)
    assert done.reason.startswith("result not stored: ")


def test_a_changed_signature_fails_clearly_and_burns_no_other_job(declare, run_until_empty):
    renamed = declare("tests.renamed", max_attempts=1)(lambda order: None)
    handle = renamed.enqueue(order=7)
    object.__setattr__(renamed, "handler", lambda order_id: None)
    run_until_empty()
    dead = ArchivedJob.objects.get(pk=handle.id)
    assert (dead.state, dead.error_class) == (JobState.DEAD, "builtins.TypeError")
    assert "unexpected keyword argument 'order'" in dead.error_message


class BrokenPolicy:
    """As one of the host's may be."""

    def delay_seconds(self, attempt, random):
        raise ZeroDivisionError


def test_a_retry_policy_that_raises_costs_the_job_a_minute_and_not_the_error_of_its_handler(declare, start):
    @declare(max_attempts=2, retry=BrokenPolicy())
    def fail():
        raise ValueError("no such order")

    handle = fail.enqueue()
    start()
    wait_until(lambda: handle.status() is JobState.SCHEDULED, "it has failed")

    failed = Execution.objects.get(job_id=handle.id)
    assert failed.reason == "the failure could not be judged: ZeroDivisionError"
    assert "ValueError: no such order" in failed.traceback
    assert "ZeroDivisionError" in failed.traceback
