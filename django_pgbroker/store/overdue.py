"""Find running jobs that their worker should have stopped long ago, and take them back. Called by the overdue duty."""

from collections.abc import Collection, Sequence

from django_pgbroker.domain.backoff import Exponential
from django_pgbroker.domain.records import OverdueJob
from django_pgbroker.domain.verdicts import judge_overdue
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.gateway import Gateway

#: The reaper knows no job types, so all such jobs wait by one policy.
_RETRY_POLICY = Exponential()


def find_overdue_jobs(gateway: Gateway, batch: int, margin_seconds: float) -> list[OverdueJob]:
    """Up to ``batch`` running jobs that are so much older than their time-out.

    Raises:
        psycopg.OperationalError: the database is away.
    """
    params = {"batch": batch, "margin": float(margin_seconds)}
    return [OverdueJob._make(row) for row in gateway.fetch("find_overdue_jobs", params)]


def take_back_overdue_jobs(gateway: Gateway, jobs: Sequence[OverdueJob]) -> Collection[int]:
    """End these claims as timed out: their holder's verdict will be refused, as its token is over.

    Returns:
        The ids of those that were taken back; others were locked, or had just ended.

    Raises:
        psycopg.OperationalError: the database is away; nothing has moved.
    """
    verdicts = [judge_overdue(job, _RETRY_POLICY) for job in jobs]
    report = acknowledge_jobs(gateway, verdicts)
    return {job.id for job in jobs} - report.busy - report.stale
