"""Cancelling a job: at once where it waits, by a mark where it runs, refused where it has ended."""

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from django_pgbroker import (
    BrokerDatabaseError,
    CancelResult,
    InvalidOption,
    JobFailed,
    JobFinished,
    JobHandle,
    JobNotFound,
    JobState,
    cancel_job,
)
from django_pgbroker.models import ArchivedJob, AuditEntry, Job, JobPayload
from tests.factories import ArchivedJobFactory, JobFactory

WAITING = [JobState.PENDING, JobState.SCHEDULED, JobState.BLOCKED, JobState.PARKED]
FINISHED = [JobState.COMPLETED, JobState.CANCELLED, JobState.EXPIRED, JobState.DEAD]


@pytest.mark.django_db
@pytest.mark.parametrize("state", WAITING)
def test_a_job_that_waits_ends_at_once_with_who_and_why(state):
    job = JobFactory(state=state, attempt=1)
    JobPayload.objects.update(arguments={"order_id": 7}, correlation_id="c-1")

    assert cancel_job(job.pk, actor="ada", reason="ordered twice", source="admin") is CancelResult.CANCELLED

    assert not Job.objects.exists()
    assert not JobPayload.objects.exists()
    archived = ArchivedJob.objects.get(pk=job.pk)
    assert (archived.state, archived.attempt) == (JobState.CANCELLED, 1)
    assert archived.reason == "cancelled by ada: ordered twice"
    assert (archived.arguments, archived.correlation_id) == ({"order_id": 7}, "c-1")
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.source, entry.action, entry.reason) == ("ada", "admin", "job.cancel", "ordered twice")
    assert (entry.target, entry.count, entry.after) == (
        {"jobs": [job.pk], "queues": [job.queue.name]},
        1,
        {"state": "cancelled"},
    )
    assert entry.before == {"state": JobState(state).label, "queue": job.queue.name, "priority": job.priority}
    with pytest.raises(JobFailed, match="is cancelled .cancelled by ada: ordered twice"):
        JobHandle(job.pk).result()


@pytest.mark.django_db
def test_a_job_without_its_payload_is_cancelled_too():
    job = JobFactory(state=JobState.PENDING)
    JobPayload.objects.all().delete()
    assert cancel_job(job.pk, actor="ada") is CancelResult.CANCELLED
    assert ArchivedJob.objects.get().reason == "cancelled by ada"


@pytest.mark.django_db
def test_a_running_job_is_marked_once_and_goes_on_until_its_worker_obeys():
    job = JobFactory(state=JobState.RUNNING, lease_token=5)
    assert cancel_job(job.pk, actor="ada", reason="first") is CancelResult.REQUESTED
    assert cancel_job(job.pk, actor="grace", reason="second") is CancelResult.REQUESTED

    job.refresh_from_db()
    assert (job.state, job.lease_token) == (JobState.RUNNING, 5)
    assert job.cancel_requested_at is not None
    assert (job.cancel_requested_by, job.cancel_reason) == ("ada", "first")
    assert [entry.actor for entry in AuditEntry.objects.all()] == ["ada"]


@pytest.mark.django_db
@pytest.mark.parametrize("state", FINISHED)
def test_a_job_that_has_ended_stays_as_it_is_and_the_caller_hears_so(state):
    job = ArchivedJobFactory(state=state, reason="as it was")
    with pytest.raises(JobFinished, match=f"is {state.label} already"):
        cancel_job(job.pk, actor="ada")
    assert ArchivedJob.objects.get(pk=job.pk).reason == "as it was"
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db
def test_an_unknown_job_is_not_found():
    with pytest.raises(JobNotFound, match="there is no job 4711"):
        cancel_job(4711, actor="ada")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "given",
    [{"actor": ""}, {"actor": "a\x00"}, {"actor": "ada", "reason": "x" * 201}, {"actor": "ada", "source": ""}],
)
def test_words_that_cannot_be_shown_are_refused_and_nothing_happens(given):
    job = JobFactory(state=JobState.PENDING)
    with pytest.raises(InvalidOption):
        cancel_job(job.pk, **given)
    assert Job.objects.filter(pk=job.pk).exists()


@pytest.mark.django_db
@pytest.mark.parametrize("job_id", ["7", 7.5, 0, -1, 2**63, None, True])
def test_an_id_that_no_job_can_have_is_refused(job_id):
    with pytest.raises(InvalidOption, match="job_id"):
        cancel_job(job_id, actor="ada")


@pytest.mark.django_db(transaction=True)
def test_a_cancel_goes_with_the_callers_transaction(broker_database):
    job = JobFactory(state=JobState.PENDING)
    with transaction.atomic():
        assert cancel_job(job.pk, actor="ada") is CancelResult.CANCELLED
        transaction.set_rollback(True)
    assert Job.objects.get().state == JobState.PENDING
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_cancel_in_a_transaction_that_has_failed_says_so(broker_database):
    job = JobFactory(state=JobState.PENDING)
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(BrokerDatabaseError, match="An earlier statement of this transaction failed"):
            cancel_job(job.pk, actor="ada")


@pytest.mark.django_db(transaction=True)
def test_a_handle_cancels_sync_and_async(broker_database):
    one, two = JobFactory(state=JobState.PENDING), JobFactory(state=JobState.SCHEDULED)
    assert JobHandle(one.pk).cancel(actor="ada", reason="why") is CancelResult.CANCELLED
    assert async_to_sync(JobHandle(two.pk).acancel)(actor="ada") is CancelResult.CANCELLED
    assert JobHandle(one.pk).status() is JobState.CANCELLED
