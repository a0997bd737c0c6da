"""Look at one job and take it by its id. Called by the run by hand (``pgbroker_run``)."""

from typing import NamedTuple

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.states import JobState
from django_pgbroker.store.gateway import Gateway


class JobStanding(NamedTuple):
    """Where a job stands; times are epoch seconds of the database's clock."""

    state: JobState
    queue: str
    is_paused: bool
    job_type: str
    worker: str | None
    leased_at: float | None
    available_at: float | None
    finished_at: float | None
    is_expired: bool
    is_limited: bool


def find_job_standing(gateway: Gateway, job_id: int) -> JobStanding | None:
    """Where a job stands, live or finished; None when there is none of this id."""
    for state, *rest in gateway.fetch("find_job_standing", {"id": job_id}):
        return JobStanding(JobState(state), *rest)
    return None


def promote_one_job(gateway: Gateway, job_id: int) -> None:
    """Make a scheduled job pending now; any other one stays as it is."""
    gateway.execute("promote_one_job", {"id": job_id})


def claim_one_job(gateway: Gateway, job_id: int, worker_id: int, lease_seconds: float) -> ClaimedJob | None:
    """Claim one pending job; None when it cannot be had, which ``find_job_standing`` explains.

    Args:
        gateway: a connection of the broker's own.
        job_id: the job.
        worker_id: who holds it.
        lease_seconds: how long it may be held without a renewal.
    """
    params = {"id": job_id, "lease_seconds": lease_seconds, "worker_id": worker_id}
    for row in gateway.fetch("claim_one_job", params):
        return ClaimedJob._make(row)
    return None
