"""Every verb on a job in every state: it does exactly what the one list of verbs says, audited, or changes nothing."""

import pytest

from django_pgbroker.domain.states import JobState, is_legal
from django_pgbroker.domain.verb_report import RefusalKind
from django_pgbroker.domain.verbs import VERBS
from django_pgbroker.models import ArchivedJob, AuditEntry, Job, JobPayload
from tests.operations.verbs.acts import ACTS, make_job, state_of

pytestmark = pytest.mark.django_db

#: Verbs on jobs that do not take a job that exists.
_OF_NO_JOB = {"job.enqueue"}

EVERY_ACT = pytest.mark.parametrize("act", ACTS, ids=lambda act: act.verb.name)
EVERY_STATE = pytest.mark.parametrize("state", JobState, ids=str)


def everything():
    """All rows of jobs."""
    return [list(model.objects.order_by("pk").values()) for model in (Job, ArchivedJob, JobPayload)]


def test_the_matrix_has_every_verb_on_jobs():
    assert {act.verb.name for act in ACTS} == {verb.name for verb in VERBS if verb.subject == "job"} - _OF_NO_JOB


@EVERY_ACT
@EVERY_STATE
def test_a_verb_changes_a_job_in_a_state_that_it_applies_to_and_refuses_any_other(act, state):
    job_id = make_job(state)
    before = everything()
    report = act.call(job_id, actor="ada", reason="why", source="command")

    if not act.verb.applies_to(state):
        assert (report.changed, report.refused) == (0, 1)
        [refusal] = report.refusals
        assert refusal.kind is (RefusalKind.FINISHED if state.is_finished else RefusalKind.WRONG_STATE)
        assert f"it is {state.label}" in refusal.why
        assert everything() == before
        assert not AuditEntry.objects.exists()
        return

    assert (report.changed, report.refused, report.ids) == (1, 0, (job_id,))
    target = act.target(state)
    assert state_of(job_id) is target
    assert target is state or is_legal(state, target)
    assert everything() != before
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.source, entry.action, entry.reason) == ("ada", "command", act.verb.name, "why")
    assert (entry.target, entry.count) == ({"jobs": [job_id], "queues": ["default"]}, 1)
    assert entry.before["state"] == state.label
    assert entry.after


@pytest.mark.parametrize("act", [act for act in ACTS if act.verb.filter_states], ids=lambda act: act.verb.name)
def test_an_id_without_a_job_is_refused_beside_those_that_are_changed(act):
    job_id = make_job(min(act.verb.states))
    report = act.call([job_id, 4_711_000], actor="ada")
    assert (report.changed, report.refused) == (1, 1)
    assert [(refusal.job_id, refusal.kind) for refusal in report.refusals] == [(4_711_000, RefusalKind.NOT_FOUND)]


@EVERY_ACT
@EVERY_STATE
def test_no_verb_touches_the_lease_of_a_job(act, state):
    job_id = make_job(state)
    lease = ("lease_token", "lease_expires_at", "worker_id", "attempt")
    before = Job.objects.filter(pk=job_id).values(*lease).first()
    act.call(job_id, actor="ada")
    after = Job.objects.filter(pk=job_id).values(*lease).first()
    if before and after:
        assert after == before
    elif after:
        assert after == {"lease_token": None, "lease_expires_at": None, "worker_id": None, "attempt": 0}
