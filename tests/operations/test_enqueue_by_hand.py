"""Enqueueing by hand: permitted, in the name of the actor, and audited in the same transaction."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import transaction

from django_pgbroker import InvalidArguments, InvalidOption, InvalidPayload, JobState, UnknownJobType, VerbRefused
from django_pgbroker.domain.errors import NotPermitted
from django_pgbroker.models import AuditEntry, Job, JobPayload
from django_pgbroker.operations.bulk_job import BULK_JOB_TYPE
from django_pgbroker.operations.enqueue_by_hand import enqueue_by_name
from django_pgbroker.operations.job_verbs import clone_job, edit_job
from tests.factories import JobFactory, JobTypeFactory


@pytest.fixture
def clerk(db):
    return get_user_model().objects.create_user("clerk", is_staff=True)


def allow(user, codename):
    user.user_permissions.add(Permission.objects.get(codename=codename, content_type__app_label="django_pgbroker"))
    return get_user_model().objects.get(pk=user.pk)


@pytest.mark.django_db
def test_a_job_by_hand_has_its_options_its_creator_and_its_audit_entry(clerk):
    user = allow(clerk, "enqueue_job")

    handle = enqueue_by_name(
        "tests.add", {"left": 1}, actor=user, reason="lost order", source="ui", priority=5, delay=60
    )

    job = Job.objects.get()
    assert (job.pk, job.state, job.priority) == (handle.id, JobState.SCHEDULED, 5)
    payload = JobPayload.objects.get()
    assert (payload.arguments, payload.created_by) == ({"left": 1}, "clerk")
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.source, entry.action, entry.reason) == ("clerk", "ui", "job.enqueue", "lost order")
    assert (entry.target, entry.count) == ({"jobs": [handle.id], "queues": ["default"]}, 1)
    assert entry.after == {"job_type": "tests.add", "queue": "default", "tenant": "default", "priority": 5}


@pytest.mark.django_db
def test_a_user_without_the_permission_enqueues_nothing(clerk):
    user = allow(clerk, "cancel_job")
    with pytest.raises(NotPermitted, match="enqueue_job"):
        enqueue_by_name("tests.add", {"left": 1}, actor=user)
    assert not Job.objects.exists()
    assert not AuditEntry.objects.exists()


def refuse_notes(user, verb, *, queue, tenant):
    return queue != "notes"


@pytest.mark.django_db
def test_the_hook_is_asked_for_the_queue_that_the_job_type_decides(clerk, settings):
    settings.PGBROKER = {"PERMISSION_HOOK": f"{__name__}.refuse_notes", "PRIORITY_LEVELS": {"backfill": -50}}
    user = allow(clerk, "enqueue_job")
    enqueue_by_name("tests.add", {"left": 1}, actor=user)
    with pytest.raises(NotPermitted, match="'notes'"):
        enqueue_by_name("tests.note", {"text": "x"}, actor=user)
    assert Job.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"job_type": "tests.unknown"}, UnknownJobType),
        ({"arguments": {}}, InvalidArguments),
        ({"arguments": ["left"]}, InvalidPayload),
        ({"priorty": 1}, InvalidOption),
        ({"created_by": "somebody else"}, InvalidOption),
        ({"actor": ""}, InvalidOption),
        ({"reason": "x" * 201}, InvalidOption),
    ],
)
def test_what_cannot_be_enqueued_is_refused_and_nothing_is_written(given, error):
    asked = {"job_type": "tests.add", "arguments": {"left": 1}, "actor": "ada"} | given
    with pytest.raises(error):
        enqueue_by_name(asked.pop("job_type"), asked.pop("arguments"), **asked)
    assert not Job.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_job_and_entry_go_with_the_callers_transaction(broker_database):
    with transaction.atomic():
        enqueue_by_name("tests.add", {"left": 1}, actor="ada")
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db
def test_nobody_writes_the_arguments_of_the_brokers_own_jobs(clerk):
    """They name the actor in whose name a bulk verb acts, and that actor may be trusted."""
    user = allow(allow(allow(clerk, "enqueue_job"), "edit_job"), "clone_job")
    own = JobFactory(job_type=JobTypeFactory(name=BULK_JOB_TYPE))
    before = JobPayload.objects.values().get()
    arguments = {
        "verb": "queue.purge", "chosen": {}, "options": {}, "cutoff": {}, "using": "default",
        "actor": {"name": "root", "source": "code", "reason": None, "user": None},
    }  # fmt: skip
    with pytest.raises(InvalidOption, match="of the broker itself"):
        enqueue_by_name(BULK_JOB_TYPE, arguments, actor=user)
    assert edit_job(own.pk, arguments, actor=user).refusals[0].why.startswith("it is a job of the broker itself")
    for forge in (
        lambda: clone_job(own.pk, arguments=arguments, actor=user),
        lambda: clone_job(own.pk, actor=user),
    ):
        with pytest.raises(VerbRefused, match="of the broker itself"):
            forge()
    assert JobPayload.objects.values().get() == before
    assert not AuditEntry.objects.exists()
