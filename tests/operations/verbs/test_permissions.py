"""One function decides who may do what; every verb asks it, in general and for each queue and tenant."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Permission

from django_pgbroker import ConfigurationError, NotPermitted, cancel_job
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.roles import Role
from django_pgbroker.domain.verb_report import RefusalKind
from django_pgbroker.domain.verbs import CANCEL_JOB, VERBS
from django_pgbroker.models import ArchivedJob, AuditEntry, Job
from django_pgbroker.operations.job_verbs import cancel_jobs, clone_job, edit_job, move_jobs, redrive_jobs, retry_jobs
from django_pgbroker.operations.permissions import may
from tests.factories import ArchivedJobFactory, JobFactory, QueueFactory
from tests.operations.verbs.acts import ACTS, make_job

pytestmark = pytest.mark.django_db

HERE = f"{__name__}.allow_mail"


def allow_mail(user, verb, *, queue, tenant):
    """A hook: only jobs of queue *mail*, and none of tenant *secret*."""
    return queue in (None, "mail") and tenant != "secret"


@pytest.fixture
def user_with():
    def make(*codenames, **more):
        user = get_user_model().objects.create_user("grace", **more)
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        return user

    return make


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.verb.name)
def test_a_verb_wants_its_own_permission_and_no_other(act, user_with):
    job_id = make_job(min(act.verb.states))
    every = {verb.permission for verb in VERBS} | {"change_job", "delete_job", "add_job", "view_job"}
    user = user_with(*every - {act.verb.permission})
    before = list(Job.objects.values()), list(ArchivedJob.objects.values())
    with pytest.raises(NotPermitted, match=f"permission 'django_pgbroker.{act.verb.permission}'"):
        act.call(job_id, actor=user)
    assert (list(Job.objects.values()), list(ArchivedJob.objects.values())) == before
    assert not AuditEntry.objects.exists()

    user.user_permissions.set([Permission.objects.get(codename=act.verb.permission)])
    user = get_user_model().objects.get(pk=user.pk)
    assert act.call(job_id, actor=user).changed == 1
    assert AuditEntry.objects.get().actor == "grace"


def test_there_is_a_permission_for_every_verb():
    assert {verb.permission for verb in VERBS} <= set(Permission.objects.values_list("codename", flat=True))


@pytest.mark.parametrize("user", [AnonymousUser(), None], ids=["anonymous", "inactive"])
def test_nobody_and_a_user_who_has_left_may_do_nothing(user, user_with):
    user = user or user_with(is_active=False, is_superuser=True)
    with pytest.raises(NotPermitted):
        cancel_job(JobFactory().pk, actor=user)


def test_a_refused_user_does_not_learn_whether_a_job_exists(user_with):
    user = user_with("view_job")
    for job_id in (JobFactory(job_type__name="tests.add").pk, 4711):
        for call in (
            lambda job_id=job_id: edit_job(job_id, {"left": 1}, actor=user),
            lambda job_id=job_id: clone_job(job_id, arguments={"left": 1}, actor=user),
            lambda job_id=job_id: cancel_job(job_id, actor=user),
        ):
            with pytest.raises(NotPermitted):
                call()


def test_the_hook_is_asked_for_the_queue_and_the_tenant_of_each_job(settings, user_with):
    settings.PGBROKER = {"PERMISSION_HOOK": HERE}
    allowed = JobFactory(queue__name="mail").pk
    elsewhere, secret = JobFactory().pk, JobFactory(queue__name="mail", tenant__name="secret").pk
    user = user_with("cancel_job")

    report = cancel_jobs([allowed, elsewhere, secret], actor=user)
    assert report.ids == (allowed,)
    assert [(refusal.job_id, refusal.kind) for refusal in report.refusals] == [
        (elsewhere, RefusalKind.NOT_PERMITTED), (secret, RefusalKind.NOT_PERMITTED),
    ]  # fmt: skip
    report = cancel_jobs(JobFilter(states=("pending",)), actor=user)
    assert (report.changed, report.refused) == (0, 2)
    with pytest.raises(NotPermitted, match="not permitted in queue 'default' of tenant 'default'"):
        cancel_job(elsewhere, actor=user)
    assert cancel_jobs([elsewhere, secret], actor="code is trusted").changed == 2


def test_the_hook_is_asked_for_the_queue_that_a_job_is_moved_to(settings, user_with):
    settings.PGBROKER = {"PERMISSION_HOOK": HERE}
    QueueFactory(name="default")
    job = JobFactory(queue__name="mail")
    with pytest.raises(NotPermitted, match="in queue 'default'"):
        move_jobs(job.pk, "default", actor=user_with("move_job"))
    assert Job.objects.get().queue.name == "mail"


def test_the_hook_is_asked_for_the_tenant_of_each_job_in_the_queue_that_it_is_moved_to(settings, user_with):
    settings.PGBROKER = {"PERMISSION_HOOK": f"{__name__}.allow_by_both"}
    QueueFactory(name="mail")
    one, other = JobFactory(tenant__name="one"), JobFactory(tenant__name="other")
    report = move_jobs([one.pk, other.pk], "mail", actor=user_with("move_job"))
    assert report.ids == (one.pk,)
    assert [refusal.kind for refusal in report.refusals] == [RefusalKind.NOT_PERMITTED]


def allow_by_both(user, verb, *, queue, tenant):
    return queue != "mail" or tenant in (None, "one")


def test_who_may_not_reach_a_job_learns_nothing_of_its_arguments(settings, user_with):
    settings.PGBROKER = {"PERMISSION_HOOK": HERE}
    secret = JobFactory(job_type__name="tests.add")
    [refusal] = edit_job(secret.pk, {"wrong": 1}, actor=user_with("edit_job")).refusals
    assert refusal.kind is RefusalKind.NOT_PERMITTED


def test_jobs_of_the_broker_itself_are_not_brought_back_by_hand(user_with):
    own = ArchivedJobFactory(dead=True, job_type__name="pgbroker.change_jobs")
    user = user_with("retry_job", "redrive_job")
    for verb in (retry_jobs, redrive_jobs):
        [refusal] = verb(own.pk, actor=user).refusals
        assert "of the broker itself" in refusal.why
    waiting = JobFactory(scheduled=True, job_type__name="pgbroker.change_jobs")
    assert retry_jobs(waiting.pk, actor=user).changed == 1


def test_the_hook_narrows_and_never_widens(settings, user_with):
    settings.PGBROKER = {"PERMISSION_HOOK": f"{__name__}.allow_all"}
    assert not may(user_with("view_job"), CANCEL_JOB)


def allow_all(user, verb, **place):
    return True


@pytest.mark.parametrize("path", ["nowhere.hook", f"{__name__}.HERE"])
def test_a_hook_that_cannot_be_used_refuses_and_says_so(path, settings, user_with):
    settings.PGBROKER = {"PERMISSION_HOOK": path}
    with pytest.raises(ConfigurationError, match="PERMISSION_HOOK"):
        cancel_job(JobFactory().pk, actor=user_with("cancel_job"))


def test_roles_grow_and_the_dangerous_verbs_are_for_admins():
    assert Role.VIEWER < Role.OPERATOR < Role.ADMIN
    by_name = {verb.name: verb.role for verb in VERBS}
    for name in ("job.cancel", "job.retry", "queue.pause"):
        assert by_name[name] is Role.OPERATOR
    for name in ("job.redrive", "queue.purge", "job.edit"):
        assert by_name[name] is Role.ADMIN
