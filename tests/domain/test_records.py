"""The values between the floors are plain, immutable and cheap; their order is part of their meaning."""

import pickle

import pytest

from django_pgbroker.domain.records import ClaimedJob, ErrorRecord, Verdict
from django_pgbroker.domain.states import JobState, Outcome


def test_a_verdict_cannot_be_changed_only_replaced():
    verdict = Verdict(1, 2, Outcome.COMPLETED, JobState.COMPLETED)
    with pytest.raises(AttributeError):
        verdict.result = "{}"
    assert verdict._replace(result="{}").result == "{}"
    assert verdict.result is None


def test_verdicts_and_claims_sort_by_job_first():
    """Rows are locked in the order of their ids, so batches are sorted by them."""
    assert (Verdict._fields[:2], ClaimedJob._fields[:2]) == (("job_id", "lease_token"), ("id", "lease_token"))


def test_they_travel_between_processes():
    verdict = Verdict(1, 2, Outcome.FAILED, JobState.DEAD, error=ErrorRecord("a.B", "m", "t", -1), reason="r")
    assert pickle.loads(pickle.dumps(verdict)) == verdict
