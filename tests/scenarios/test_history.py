"""The checker of the scenarios sees what it is there to see."""

import pytest

from django_pgbroker.domain.states import Outcome
from tests.factories import ArchivedJobFactory, ExecutionFactory, JobFactory, JobPayloadFactory
from tests.scenarios.history import check_history


def ran(rows, job_id, token):
    rows.run("insert into effect (job_id, lease_token, process_id, what) values (%s, %s, 1, 'done')", job_id, token)


@pytest.fixture
def good(story, rows):
    """A job that was lost once, failed once and then completed."""
    job = ArchivedJobFactory(id=1_000)
    for token, outcome in enumerate([Outcome.LOST, Outcome.FAILED, Outcome.COMPLETED], start=10):
        ExecutionFactory(job_id=1_000, lease_token=token, outcome=outcome)
        ran(rows, 1_000, token)
    return job


def test_a_history_that_explains_everything_passes(good, rows):
    waiting, running = JobFactory(), JobFactory(running=True)
    ran(rows, running.id, running.lease_token)
    check_history([good.id, waiting.id, running.id])


def test_a_job_that_is_nowhere_is_found(good):
    with pytest.raises(AssertionError, match="job 7 is in 0 places instead of one"):
        check_history([1_000, 7])


def test_a_job_that_is_archived_and_still_live_is_found(good):
    live = JobFactory()
    ArchivedJobFactory(id=live.id)
    with pytest.raises(AssertionError, match=f"job {live.id} is in 2 places instead of one"):
        check_history([good.id, live.id])


def test_a_payload_that_was_left_behind_is_found(good):
    JobPayloadFactory(job=None, job_id=99)
    with pytest.raises(AssertionError, match="the payload of job 99 was left behind"):
        check_history([1_000])


def test_a_job_that_completed_twice_is_found(good):
    ExecutionFactory(job_id=1_000, lease_token=14, outcome=Outcome.COMPLETED)
    with pytest.raises(AssertionError, match="job 1000 completed 2 times\njob 1000 ran again after it was completed"):
        check_history([1_000])


def test_a_claim_that_was_recorded_twice_is_found(good):
    ExecutionFactory(job_id=1_000, lease_token=11, outcome=Outcome.FAILED)
    with pytest.raises(AssertionError, match=r"claim \(1000, 11\) was recorded 2 times"):
        check_history([1_000])


def test_a_run_that_no_execution_knows_is_found(good, rows):
    ran(rows, 1_000, 15)
    with pytest.raises(AssertionError, match="job 1000 ran under token 15, which no execution knows"):
        check_history([1_000])


def test_an_archived_job_whose_completion_is_not_in_the_history_is_found(story):
    ArchivedJobFactory(id=1_000)
    with pytest.raises(AssertionError, match="job 1000 is completed without an execution that says so"):
        check_history([1_000])


def test_a_completion_of_a_job_that_is_still_to_run_is_found(story):
    live = JobFactory()
    ExecutionFactory(job_id=live.id, outcome=Outcome.COMPLETED)
    with pytest.raises(AssertionError, match=f"job {live.id} completed in its history but not in the archive"):
        check_history([live.id])
