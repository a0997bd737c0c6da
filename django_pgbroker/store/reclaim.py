"""Recover jobs whose lease has lapsed, and what a worker holds after a commit in doubt."""

import random
from collections.abc import Collection

from django_pgbroker.domain.backoff import Exponential
from django_pgbroker.domain.records import LapsedJob, ReclaimedJob, Verdict
from django_pgbroker.domain.verdicts import judge_loss
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.gateway import Gateway

#: The reaper knows no job types, so all lost jobs wait by one policy.
_RETRY_POLICY = Exponential()


def reclaim_jobs(gateway: Gateway, batch: int) -> list[ReclaimedJob]:
    """Move up to ``batch`` lapsed jobs back to their queue, or to the dead letters when their attempts are spent.

    Safe in any number of processes, and beside the owner: the acknowledge asks again, under the lock, whether the lease
    is over, and a row that somebody else holds is seen again on the next tick.

    Returns:
        What was moved.

    Raises:
        psycopg.OperationalError: the database is away; nothing has moved.
    """
    lapsed = [LapsedJob._make(row) for row in gateway.fetch("find_lapsed_jobs", {"batch": batch})]
    if not lapsed:
        return []
    verdicts = {job.id: _judge(job) for job in lapsed}
    report = acknowledge_jobs(gateway, list(verdicts.values()), lapsed=True)
    return [
        ReclaimedJob(job.id, job.worker_id, job.queue, job.job_type, job.attempt, verdicts[job.id].next_state)
        for job in lapsed
        if job.id not in report.busy and job.id not in report.stale
    ]


def _judge(job: LapsedJob) -> Verdict:
    delay_seconds = _RETRY_POLICY.delay_seconds(job.attempt, random.random)
    return judge_loss(job, delay_seconds)


def find_claims_of_worker(gateway: Gateway, worker_id: int) -> set[tuple[int, int]]:
    """What the database says one worker holds: pairs of job id and lease token."""
    return {(job_id, token) for job_id, token in gateway.fetch("find_claims_of_worker", {"worker_id": worker_id})}


def find_recorded_claims(gateway: Gateway, claims: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Which of these claims, pairs of job id and lease token, their owner has acknowledged already."""
    params = {
        "ids": array_of_integers(job_id for job_id, _ in claims),
        "tokens": array_of_integers(token for _, token in claims),
    }
    return {(job_id, token) for job_id, token in gateway.fetch("find_recorded_claims", params)}
