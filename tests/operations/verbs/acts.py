"""Every verb on one job, with options that change something, and the state that it leads to. For matrices."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from django_pgbroker.domain import verbs
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.models import ArchivedJob, Job
from django_pgbroker.operations import job_verbs
from django_pgbroker.operations.job_changes import change_jobs
from tests.factories import ArchivedJobFactory, JobFactory, QueueFactory

OTHER_QUEUE = "elsewhere"


class Act(NamedTuple):
    """A verb, how it is called on the id of a job, and where a job goes that it changes (None: it stays)."""

    verb: Verb
    call: Callable[..., VerbReport]
    target: Callable[[JobState], JobState]


def _to(state: JobState) -> Callable[[JobState], JobState]:
    return lambda _origin: state


def _stay(origin: JobState) -> JobState:
    return origin


def _cancelled(origin: JobState) -> JobState:
    return JobState.RUNNING if origin is JobState.RUNNING else JobState.CANCELLED


def _clone(job_id: int, **asking: Any) -> VerbReport:
    return change_jobs(verbs.CLONE_JOB, job_id, {}, **asking)


ACTS = [
    Act(verbs.CANCEL_JOB, job_verbs.cancel_jobs, _cancelled),
    Act(verbs.RUN_JOB_NOW, job_verbs.run_jobs_now, _to(JobState.PENDING)),
    Act(verbs.RETRY_JOB, job_verbs.retry_jobs, _to(JobState.PENDING)),
    Act(
        verbs.POSTPONE_JOB,
        lambda job_id, **asking: job_verbs.postpone_jobs(job_id, delay=timedelta(hours=3), **asking),
        _to(JobState.SCHEDULED),
    ),
    Act(verbs.SET_JOB_PRIORITY, lambda job_id, **asking: job_verbs.set_job_priorities(job_id, 77, **asking), _stay),
    Act(verbs.MOVE_JOB, lambda job_id, **asking: job_verbs.move_jobs(job_id, OTHER_QUEUE, **asking), _stay),
    Act(verbs.RELEASE_JOB, job_verbs.release_jobs, _to(JobState.PENDING)),
    Act(
        verbs.EDIT_JOB,
        lambda job_id, **asking: job_verbs.edit_job(job_id, {"left": 5, "right": 6}, **asking),
        _stay,
    ),
    Act(verbs.CLONE_JOB, _clone, _stay),
    Act(verbs.REDRIVE_JOB, job_verbs.redrive_jobs, _to(JobState.PENDING)),
    Act(verbs.DISCARD_JOB, job_verbs.discard_jobs, _to(JobState.CANCELLED)),
]


def make_job(state: JobState) -> int:
    """The id of a job of type ``tests.add`` in this state, beside another queue to move to."""
    QueueFactory(name=OTHER_QUEUE)
    if state.is_finished:
        return int(ArchivedJobFactory(state=state, job_type__name="tests.add", arguments={"left": 1}).pk)
    traits = {JobState.RUNNING: {"running": True}, JobState.SCHEDULED: {"scheduled": True}}.get(state, {"state": state})
    if state is JobState.PARKED:
        traits |= {"parked_reason": 4, "parked_on": -1}
    job = JobFactory(**traits, job_type__name="tests.add", payload__arguments={"left": 1})
    return int(job.pk)


def state_of(job_id: int) -> JobState:
    """The one state of a job, live or finished.

    Raises:
        AssertionError: it exists in both tables, or in none.
    """
    found = [
        *Job.objects.filter(pk=job_id).values_list("state", flat=True),
        *ArchivedJob.objects.filter(pk=job_id).values_list("state", flat=True),
    ]
    assert len(found) == 1, f"job {job_id} exists {len(found)} times"
    return JobState(found[0])
