"""Look one job up, live or finished. Called by the handles."""

from dataclasses import dataclass

from django_pgbroker.domain.states import JobState
from django_pgbroker.store.gateway import CallerGateway


@dataclass(frozen=True)
class FoundJob:
    """How a job stands.

    Args:
        job_type: its name.
        result: JSON text; ``None`` when none is stored.
        reason: why it was cancelled, expired or given up, or why its result is not stored.
    """

    state: JobState
    job_type: str
    result: str | None
    reason: str | None
    error_class: str | None
    error_message: str | None


def find_job(gateway: CallerGateway, job_id: int) -> FoundJob | None:
    """The job of this id, or ``None``; one statement, so a job that finishes meanwhile is never missed.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    for state, *rest in gateway.fetch("find_job", {"id": job_id}):
        return FoundJob(JobState(state), *rest)
    return None
