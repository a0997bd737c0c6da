"""Store one job on the caller's Django connection, in its transaction. Called by ``operations.enqueue``."""

from django_pgbroker.domain.job_spec import JobSpec
from django_pgbroker.store.gateway import CallerGateway, Row


def enqueue_job(gateway: CallerGateway, spec: JobSpec, arguments: str, headers: str | None = None) -> int | None:
    """Store a job and return its id, in one round trip; ``None`` when the queue, job type or tenant does not exist.

    Args:
        gateway: the caller's.
        spec: the job.
        arguments: of its handler, as JSON text.
        headers: what travels beside them, as JSON text.

    Raises:
        django.db.DatabaseError: as the server answered; the caller's transaction is as it was before.
    """
    if spec.is_timed:
        rows = enqueue_timed_job(gateway, spec, arguments, headers)
    else:
        rows = gateway.fetch_guarded("enqueue_job", _params(spec, arguments, headers))
    return int(rows[0][0]) if rows else None


def enqueue_timed_job(gateway: CallerGateway, spec: JobSpec, arguments: str, headers: str | None = None) -> list[Row]:
    """Store a job that has a start, an expiry or a deadline: a longer statement, which most jobs need not pay for."""
    times = {
        "delay_seconds": spec.available.seconds,
        "run_at": spec.available.at,
        "expires_seconds": spec.expires.seconds,
        "expires_at": spec.expires.at,
        "deadline_seconds": spec.deadline.seconds,
        "deadline_at": spec.deadline.at,
    }
    return gateway.fetch_guarded("enqueue_timed_job", {**_params(spec, arguments, headers), **times})


def _params(spec: JobSpec, arguments: str, headers: str | None) -> dict[str, object]:
    return {
        "queue": spec.queue,
        "job_type": spec.job_type,
        "tenant": spec.tenant,
        "arguments": arguments,
        "headers": headers,
        "version": spec.version,
        "priority": spec.priority,
        "max_attempts": spec.max_attempts,
        "timeout_seconds": spec.timeout_seconds,
        "correlation_id": spec.correlation_id,
        "created_by": spec.created_by,
    }
