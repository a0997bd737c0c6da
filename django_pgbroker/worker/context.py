"""What a handler may know of its own job: the ``ctx`` argument and ``current_job()``."""

import json
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django_pgbroker.domain.records import ClaimedJob


@dataclass(frozen=True)
class JobContext:
    """The job that is running, as its handler sees it.

    Args:
        id: of the job; the same over all its attempts.
        job_type: its registered name.
        queue: where it was claimed.
        tenant: whose job it is.
        attempt: counts from 1.
        max_attempts: the last attempt.
        lease_token: of this claim; a later claim has a larger one.
        correlation_id: as the producer gave it.
        deadline_at: the latest finish, if there is one.
        headers: what travels beside the arguments.
    """

    id: int
    job_type: str
    queue: str
    tenant: str
    attempt: int
    max_attempts: int
    lease_token: int
    correlation_id: str | None
    deadline_at: datetime | None
    headers: dict[str, Any]
    _is_stopping: Callable[[int], bool]
    _beat: Callable[[int], None]

    @property
    def idempotency_key(self) -> str:
        """A text that is the same for every attempt of this job, for services that drop repeated requests."""
        return f"pgbroker-job-{self.id}"

    def should_stop(self) -> bool:
        """Whether the handler should end soon: the worker drains, or the lease of this job is lost or about to be."""
        return self._is_stopping(self.lease_token)

    def heartbeat(self) -> None:
        """Say that the handler gets on; only of consequence where its job type has a ``heartbeat_timeout``. No SQL."""
        self._beat(self.lease_token)


def make_context(
    claim: ClaimedJob,
    job_type: str,
    queue: str,
    tenant: str,
    *,
    is_stopping: Callable[[int], bool],
    beat: Callable[[int], None],
) -> JobContext:
    """The context of a claimed job."""
    return JobContext(
        id=claim.id,
        job_type=job_type,
        queue=queue,
        tenant=tenant,
        attempt=claim.attempt,
        max_attempts=claim.max_attempts,
        lease_token=claim.lease_token,
        correlation_id=claim.correlation_id,
        deadline_at=None if claim.deadline_at is None else datetime.fromtimestamp(claim.deadline_at, UTC),
        headers=json.loads(claim.headers) if claim.headers else {},
        _is_stopping=is_stopping,
        _beat=beat,
    )


#: A function, so that a job which never asks for its context does not pay for it.
running_job: ContextVar[Callable[[], JobContext] | None] = ContextVar("pgbroker_running_job", default=None)


def current_job() -> JobContext | None:
    """The context of the job that runs here, sync or async; None outside of one."""
    get = running_job.get()
    return get() if get else None
