"""What each verb on jobs does to the row, beyond its state."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from django_pgbroker import InvalidArguments, JobHandle, JobNotFound, PayloadTooLarge, UnknownJobType, UnknownQueue
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verb_report import RefusalKind
from django_pgbroker.models import ArchivedJob, AuditEntry, Job, JobPayload, JobStep
from django_pgbroker.operations.job_verbs import (
    cancel_jobs,
    clone_job,
    discard_jobs,
    edit_job,
    move_jobs,
    postpone_jobs,
    redrive_jobs,
    release_jobs,
    retry_jobs,
    run_jobs_now,
    set_job_priorities,
)
from tests.factories import ArchivedJobFactory, ExecutionFactory, JobFactory, JobStepFactory, QueueFactory

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def order_of(job):
    """What the claim order must be."""
    return job.available_at - timedelta(seconds=job.priority * job.queue.ageing_seconds)


def reread(job_id):
    return Job.objects.select_related("queue", "payload").get(pk=job_id)


def test_a_job_that_is_run_now_is_due_and_claimed_in_its_turn():
    job = JobFactory(scheduled=True, priority=5)
    run_jobs_now(job.pk, actor="ada")
    job = reread(job.pk)
    assert job.available_at <= timezone.now()
    assert job.claim_order == order_of(job)


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.SCHEDULED])
def test_a_postponed_job_starts_after_its_time(state):
    job = JobFactory(state=state, priority=5)
    at = timezone.now() + HOUR
    postpone_jobs(job.pk, run_at=at, actor="ada")
    job = reread(job.pk)
    assert (job.state, job.available_at, job.claim_order) == (JobState.SCHEDULED, at, order_of(job))


def test_a_job_that_would_expire_before_it_could_start_is_not_postponed():
    job = JobFactory(expires_at=timezone.now() + HOUR / 2)
    report = postpone_jobs(job.pk, delay=HOUR, actor="ada")
    assert [(refusal.kind, refusal.why) for refusal in report.refusals] == [
        (RefusalKind.UNCHANGED, "it would expire before it could start")
    ]
    assert reread(job.pk).state == JobState.PENDING


def test_a_priority_moves_a_job_within_its_queue_and_the_same_one_again_is_no_change():
    job = JobFactory(priority=0)
    set_job_priorities(job.pk, "user", actor="ada")
    job = reread(job.pk)
    assert (job.priority, job.claim_order) == (50, order_of(job))
    report = set_job_priorities(job.pk, 50, actor="ada")
    assert (report.changed, report.refusals[0].why) == (0, "its priority is 50 already")
    assert AuditEntry.objects.count() == 1


def test_a_moved_job_waits_by_the_ageing_of_its_new_queue():
    job = JobFactory(priority=7)
    QueueFactory(name="slow", ageing_seconds=1_000)
    move_jobs(job.pk, "slow", actor="ada")
    job = reread(job.pk)
    assert (job.queue.name, job.claim_order) == ("slow", order_of(job))
    with pytest.raises(UnknownQueue, match="Did you mean 'slow'"):
        move_jobs(job.pk, "slov", actor="ada")


def test_a_released_job_waits_for_nothing_any_more():
    job = JobFactory(state=JobState.PARKED, parked_reason=4, parked_on=-1)
    release_jobs(job.pk, actor="ada")
    job = reread(job.pk)
    assert (job.state, job.parked_reason, job.parked_on) == (JobState.PENDING, None, None)


@pytest.mark.parametrize(
    ("keep_attempts", "expected"), [(False, (0, 3, 0, 0)), (True, (3, 4, 2, 1))], ids=["reset", "kept"]
)
def test_a_redriven_job_is_the_same_job(keep_attempts, expected):
    dead = ArchivedJobFactory(
        dead=True, deaths=2, interruptions=1, priority=9, correlation_id="c-1", created_by="shop", headers={"a": 1},
        timeout_seconds=77, version=2, arguments={"left": 4},
    )  # fmt: skip
    ExecutionFactory(job_id=dead.pk, failed=True)
    JobStepFactory(job_id=dead.pk)

    redrive_jobs(dead.pk, keep_attempts=keep_attempts, actor="ada")

    job = reread(dead.pk)
    assert not ArchivedJob.objects.exists()
    assert (job.attempt, job.max_attempts, job.deaths, job.interruptions) == expected
    assert (job.created_at, job.priority, job.timeout_seconds, job.is_tracked) == (dead.created_at, 9, 77, True)
    assert job.claim_order == order_of(job)
    payload = job.payload
    assert (payload.version, payload.arguments, payload.headers) == (2, {"left": 4}, {"a": 1})
    assert (payload.correlation_id, payload.created_by) == ("c-1", "shop")
    assert JobStep.objects.count() == 1
    assert JobHandle(dead.pk).status() is JobState.PENDING


def test_a_job_that_was_archived_before_time_outs_were_kept_gets_the_default(settings):
    settings.PGBROKER = {"DEFAULT_TIMEOUT_SECONDS": 123}
    dead = ArchivedJobFactory(dead=True)
    retry_jobs(dead.pk, actor="ada")
    job = reread(dead.pk)
    assert (job.timeout_seconds, job.is_tracked) == (123, False)


def test_attempts_that_are_kept_never_pass_their_bound():
    dead = ArchivedJobFactory(dead=True, attempt=1000, max_attempts=1000)
    redrive_jobs(dead.pk, keep_attempts=True, actor="ada")
    job = reread(dead.pk)
    assert (job.attempt, job.max_attempts) == (999, 1000)


def test_a_discarded_dead_letter_is_cancelled_and_keeps_its_error():
    dead = ArchivedJobFactory(dead=True, result={"half": 1})
    JobStepFactory(job_id=dead.pk)
    discard_jobs(dead.pk, actor="ada", reason="customer left")
    job = ArchivedJob.objects.get(pk=dead.pk)
    assert (job.state, job.reason) == (JobState.CANCELLED, "discarded by ada: customer left")
    assert job.finished_at > dead.finished_at
    kept = ("error_class", "error_message", "fingerprint", "arguments", "created_at", "attempt", "result")
    assert [getattr(job, name) for name in kept] == [getattr(dead, name) for name in kept]
    assert not JobStep.objects.exists()


@pytest.mark.parametrize("is_dead", [False, True])
def test_edited_arguments_are_checked_stored_and_audited_with_those_before(is_dead):
    more = {"job_type__name": "tests.add"}
    job = (
        ArchivedJobFactory(dead=True, arguments={"left": 1}, **more)
        if is_dead
        else JobFactory(payload__arguments={"left": 1}, **more)
    )
    with pytest.raises(InvalidArguments, match="is unknown to the handler"):
        edit_job(job.pk, {"left": 1, "wrong": 2}, actor="ada")
    with pytest.raises(InvalidArguments, match="declared as int"):
        edit_job(job.pk, {"left": "1"}, actor="ada")
    assert not AuditEntry.objects.exists()

    assert edit_job(job.pk, {"left": 5}, actor="ada").changed == 1
    stored = ArchivedJob.objects.get() if is_dead else JobPayload.objects.get()
    assert stored.arguments == {"left": 5}
    entry = AuditEntry.objects.get()
    assert (entry.before["arguments"], entry.after["arguments"]) == ({"left": 1}, {"left": 5})


def test_arguments_that_nothing_can_check_are_not_edited(settings):
    unknown = JobFactory(job_type__name="nobody.knows")
    with pytest.raises(UnknownJobType):
        edit_job(unknown.pk, {}, actor="ada")
    assert edit_job(4711, {}, actor="ada").refusals[0].kind is RefusalKind.NOT_FOUND
    settings.PGBROKER = {"PAYLOAD_LIMIT_BYTES": 256}
    with pytest.raises(PayloadTooLarge):
        edit_job(JobFactory(job_type__name="tests.any").pk, {"text": "x" * 300}, actor="ada")


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.RUNNING, JobState.COMPLETED, JobState.DEAD])
def test_a_clone_carries_what_its_original_carries(state):
    more = {"priority": 3, "job_type__name": "tests.add"}
    if state.is_finished:
        original = ArchivedJobFactory(state=state, arguments={"left": 2}, headers={"h": 1}, **more)
    else:
        traits = {"running": True} if state is JobState.RUNNING else {"state": state}
        original = JobFactory(
            payload__arguments={"left": 2}, payload__headers={"h": 1}, timeout_seconds=9, **traits, **more
        )
    handle = clone_job(original.pk, actor="ada")
    clone = reread(handle.id)
    assert handle.id != original.pk
    assert (clone.state, clone.attempt, clone.priority) == (JobState.PENDING, 0, 3)
    assert clone.claim_order == order_of(clone)
    assert (clone.payload.arguments, clone.payload.headers) == ({"left": 2}, {"h": 1})
    assert clone.payload.created_by == "ada"
    assert AuditEntry.objects.get().after == {"clone": handle.id, "queue": "default"}


def test_a_clone_may_differ():
    QueueFactory(name="other")
    original = ArchivedJobFactory(job_type__name="tests.add")
    clone = reread(clone_job(original.pk, queue="other", priority="user", arguments={"left": 8}, actor="ada").id)
    assert (clone.queue.name, clone.priority, clone.payload.arguments) == ("other", 50, {"left": 8})
    with pytest.raises(JobNotFound):
        clone_job(4711, actor="ada")


def test_running_jobs_are_asked_and_waiting_ones_end_in_one_call():
    waiting, running = JobFactory(), JobFactory(running=True)
    report = cancel_jobs([waiting.pk, running.pk], actor="ada")
    assert (report.changed, report.requested) == (2, 1)
    again = cancel_jobs([waiting.pk, running.pk], actor="grace")
    assert (again.changed, again.requested, [each.kind for each in again.refusals]) == (0, 1, [RefusalKind.FINISHED])
    assert AuditEntry.objects.get().after == {"state": "cancelled", "cancel_requested": 1}


@pytest.mark.parametrize("act", ["update pgbroker.audit_entry set actor = 'x'", "delete from pgbroker.audit_entry"])
def test_the_audit_is_append_only_for_all_but_its_owner(act):
    cancel_jobs(JobFactory().pk, actor="ada")
    with connection.cursor() as cursor:
        cursor.execute("create role clerk")
        cursor.execute("grant usage on schema pgbroker to clerk")
        cursor.execute("grant all on pgbroker.audit_entry to clerk")
        cursor.execute("grant execute on function pgbroker.clock() to clerk")
        cursor.execute("set local role clerk")
        cursor.execute("insert into pgbroker.audit_entry (actor, source, action) values ('clerk', 'sql', 'none')")
        cursor.execute("savepoint before")
        with pytest.raises(Exception, match="audit log is append-only"):
            cursor.execute(act)
        cursor.execute("rollback to before")
        cursor.execute("reset role")
    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {"ada", "clerk"}
