"""How jobs are printed in a list: columns for live and for finished ones, and the keys of their JSON."""

from typing import Any

from django_pgbroker.domain.states import JobState, ParkedReason
from django_pgbroker.management.listing import write_moment
from django_pgbroker.models import ArchivedJob, Job

LIVE_HEAD = ("id", "state", "type", "queue", "tenant", "priority", "attempt", "created", "due", "worker")
FINISHED_HEAD = ("id", "state", "type", "queue", "tenant", "attempt", "created", "finished", "error", "reason")


def live_row(job: Job) -> tuple[str, ...]:
    """A live job as a line under ``LIVE_HEAD``."""
    return (
        str(job.pk),
        describe_state(job),
        job.job_type.name,
        job.queue.name,
        job.tenant.name,
        str(job.priority),
        f"{job.attempt}/{job.max_attempts}",
        write_moment(job.created_at),
        write_moment(job.available_at),
        job.worker.name if job.worker else "",
    )


def finished_row(job: Any) -> tuple[str, ...]:
    """A finished job, with the start of its error, as a line under ``FINISHED_HEAD``."""
    return (
        str(job.pk),
        JobState(job.state).label,
        job.job_type.name,
        job.queue.name,
        job.tenant.name,
        f"{job.attempt}/{job.max_attempts}",
        write_moment(job.created_at),
        write_moment(job.finished_at),
        describe_error(job.error_class, job.error_start),
        job.reason or "",
    )


def describe_error(error_class: str | None, message: str | None) -> str:
    """The class without its module, and the message."""
    name = (error_class or "").rpartition(".")[2]
    return ": ".join(part for part in (name, message) if part)


def describe_state(job: Any) -> str:
    """The state in words, with what a parked job waits for and whether a running one is asked to end."""
    if isinstance(job, Job):
        if job.cancel_requested_at is not None:
            return "running, cancel requested"
        if (waits_for := describe_parking(job)) is not None:
            return f"parked: {waits_for}"
    return JobState(job.state).label


def describe_parking(job: Job) -> str | None:
    """What a parked job waits for; None for one that is not parked."""
    if job.state != JobState.PARKED or job.parked_reason is None:
        return None
    known = {reason.value: reason.label for reason in ParkedReason}
    return known.get(job.parked_reason, f"reason {job.parked_reason}")


def encode_job(job: Any) -> dict[str, Any]:
    """One job with the keys that the reference documents; what a live or finished job has not is null."""
    is_live = isinstance(job, Job)
    worker = job.worker if is_live else None
    return {
        "id": job.pk,
        "state": JobState(job.state).label,
        "type": job.job_type.name,
        "queue": job.queue.name,
        "tenant": job.tenant.name,
        "priority": job.priority,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "created_at": job.created_at,
        "available_at": job.available_at,
        "finished_at": None if is_live else job.finished_at,
        "worker": worker.name if worker else None,
        "parked_for": describe_parking(job) if is_live else None,
        "cancel_requested_at": job.cancel_requested_at if is_live else None,
        "error_class": None if is_live else job.error_class,
        "error": None if is_live else _read_error(job),
        "reason": None if is_live else job.reason,
    }


def _read_error(job: ArchivedJob) -> str | None:
    """The start of the message where a list read no more."""
    start: str | None = getattr(job, "error_start", job.error_message)
    return start
