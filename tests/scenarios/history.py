"""Checks what must be true of every job after any scenario, from the archive, the executions and the effects."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from django.db import connection

from django_pgbroker.domain.states import FINISHED_STATES, JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution, Job

#: Outcomes after which a job may run once more.
EXPLAINS_ANOTHER_RUN = {Outcome.LOST, Outcome.INTERRUPTED, Outcome.FAILED, Outcome.SNOOZED}


def check_history(job_ids: Iterable[int]) -> None:
    """Fail if one of these jobs is lost, was completed twice, or ran once more than its executions explain.

    Args:
        job_ids: every job that was enqueued.
    """
    job_ids = set(job_ids)
    faults = [
        *_find_lost(job_ids),
        *_find_half_archived(job_ids),
        *_find_repeated_ends(job_ids),
        *_find_unexplained_runs(job_ids),
    ]
    assert not faults, "\n".join(faults)


def _find_lost(job_ids: set[int]) -> list[str]:
    live = set(Job.objects.filter(pk__in=job_ids).values_list("pk", flat=True))
    archived = Counter(ArchivedJob.objects.filter(pk__in=job_ids).values_list("pk", flat=True))
    places = {job_id: archived[job_id] + (job_id in live) for job_id in job_ids}
    return [f"job {job_id} is in {count} places instead of one" for job_id, count in places.items() if count != 1]


def _find_half_archived(job_ids: set[int]) -> list[str]:
    states = dict(ArchivedJob.objects.filter(pk__in=job_ids).values_list("pk", "state"))
    unfinished = {job_id: state for job_id, state in states.items() if state not in FINISHED_STATES}
    faults = [f"job {job_id} is archived as {state}" for job_id, state in unfinished.items()]
    with connection.cursor() as cursor:
        cursor.execute(
            "select job_id from pgbroker.job_payload where not exists (select from pgbroker.job where job.id = job_id)"
        )
        faults += [f"the payload of job {job_id} was left behind" for (job_id,) in cursor.fetchall()]
    return faults


def _find_repeated_ends(job_ids: set[int]) -> list[str]:
    faults = []
    ends = Counter(
        Execution.objects.filter(job_id__in=job_ids, outcome=Outcome.COMPLETED).values_list("job_id", flat=True)
    )
    faults += [f"job {job_id} completed {count} times" for job_id, count in ends.items() if count > 1]
    done = set(ArchivedJob.objects.filter(pk__in=job_ids, state=JobState.COMPLETED).values_list("pk", flat=True))
    faults += [f"job {job_id} is completed without an execution that says so" for job_id in done - ends.keys()]
    faults += [f"job {job_id} completed in its history but not in the archive" for job_id in ends.keys() - done]
    tokens = Counter(Execution.objects.filter(job_id__in=job_ids).values_list("job_id", "lease_token"))
    faults += [f"claim {claim} was recorded {count} times" for claim, count in tokens.items() if count > 1]
    return faults


def _find_unexplained_runs(job_ids: set[int]) -> list[str]:
    """Every claim whose handler began has an execution, unless its job is running now."""
    with connection.cursor() as cursor:
        cursor.execute("select distinct job_id, lease_token from effect")
        runs = defaultdict(set)
        for job_id, token in cursor.fetchall():
            runs[job_id].add(token)
    recorded = defaultdict(dict)
    for job_id, token, outcome in Execution.objects.filter(job_id__in=job_ids).values_list(
        "job_id", "lease_token", "outcome"
    ):
        recorded[job_id][token] = Outcome(outcome)
    running = dict(Job.objects.filter(state=JobState.RUNNING).values_list("pk", "lease_token"))
    faults = []
    for job_id in job_ids:
        unknown = runs[job_id] - recorded[job_id].keys() - {running.get(job_id)}
        faults += [f"job {job_id} ran under token {token}, which no execution knows" for token in unknown]
        outcomes = [outcome for _, outcome in sorted(recorded[job_id].items())]
        for earlier in outcomes[:-1]:
            if earlier not in EXPLAINS_ANOTHER_RUN:
                faults.append(f"job {job_id} ran again after it was {earlier.label}")
    return faults
