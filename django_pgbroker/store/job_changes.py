"""The statements of operators' verbs, for jobs whose rows the caller holds. Called by ``operations.job_actions``.

Each answers the ids that it changed, and raises ``django.db.DatabaseError`` as the server answered.
"""

from collections.abc import Iterable
from datetime import datetime

from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.gateway import CallerGateway


def cancel_jobs(gateway: CallerGateway, ids: Iterable[int], actor: str, reason: str | None) -> list[int]:
    """Archive waiting jobs as cancelled."""
    return _change(gateway, "cancel_jobs", ids, actor=actor, reason=reason)


def request_cancels(gateway: CallerGateway, ids: Iterable[int], actor: str, reason: str | None) -> list[int]:
    """Mark running jobs as to be cancelled; those that are marked already keep their first mark."""
    return _change(gateway, "request_cancels", ids, actor=actor, reason=reason)


def run_jobs_now(gateway: CallerGateway, ids: Iterable[int]) -> list[int]:
    """Make scheduled jobs due."""
    return _change(gateway, "run_jobs_now", ids)


def postpone_jobs(gateway: CallerGateway, ids: Iterable[int], run_at: datetime) -> list[int]:
    """Have jobs start later, but for those that expire before that."""
    return _change(gateway, "postpone_jobs", ids, run_at=run_at)


def set_job_priorities(gateway: CallerGateway, ids: Iterable[int], priority: int) -> list[int]:
    """Give jobs another priority."""
    return _change(gateway, "set_job_priorities", ids, priority=priority)


def move_jobs(gateway: CallerGateway, ids: Iterable[int], queue: str) -> list[int]:
    """Have jobs wait in another queue."""
    return _change(gateway, "move_jobs", ids, queue=queue)


def release_jobs(gateway: CallerGateway, ids: Iterable[int]) -> list[int]:
    """Make parked jobs pending."""
    return _change(gateway, "release_jobs", ids)


def redrive_jobs(gateway: CallerGateway, ids: Iterable[int], *, keep_attempts: bool, timeout_seconds: int) -> list[int]:
    """Send finished jobs back to their queues.

    Args:
        gateway: the caller's.
        ids: of the jobs.
        keep_attempts: grant one more attempt than were used, instead of all of them anew.
        timeout_seconds: of those whose own is not known.
    """
    return _change(gateway, "redrive_jobs", ids, keep_attempts=keep_attempts, timeout_seconds=timeout_seconds)


def discard_jobs(gateway: CallerGateway, ids: Iterable[int], actor: str, reason: str | None) -> list[int]:
    """Turn dead letters into cancelled jobs."""
    return _change(gateway, "discard_jobs", ids, actor=actor, reason=reason)


def edit_job(gateway: CallerGateway, job_id: int, arguments: str, version: int, *, is_dead_letter: bool) -> str | None:
    """Replace the arguments of a job, as JSON text; returns those before, or None when the job is gone."""
    name = "edit_dead_letter" if is_dead_letter else "edit_payload"
    for (before,) in gateway.fetch(name, {"id": job_id, "arguments": arguments, "version": version}):
        return str(before)
    return None


def clone_job(
    gateway: CallerGateway,
    job_id: int,
    actor: str,
    *,
    queue: str | None,
    priority: int | None,
    arguments: str | None,
    version: int | None,
    timeout_seconds: int,
) -> int | None:
    """Store a job that carries what another one carries; None when that or the queue does not exist.

    Args:
        gateway: the caller's.
        job_id: of the original.
        actor: who made it.
        queue, priority, arguments, version: None leaves them as they are.
        timeout_seconds: where that of the original is not known.
    """
    params = {
        "id": job_id,
        "actor": actor,
        "queue": queue,
        "priority": priority,
        "arguments": arguments,
        "version": version,
        "timeout_seconds": timeout_seconds,
    }
    for (new_id,) in gateway.fetch("clone_job", params):
        return int(new_id)
    return None


def _change(gateway: CallerGateway, verb: str, ids: Iterable[int], **params: object) -> list[int]:
    return sorted(int(job_id) for (job_id,) in gateway.fetch(verb, {"ids": array_of_integers(ids), **params}))
