"""What a handler may know of its own job: the ``ctx`` argument and ``current_job()``."""

import json
import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import JobStopped
from django_pgbroker.worker.job_logging import JobLogger
from django_pgbroker.worker.link import JobLink


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
        deadline_at: the latest finish of the job, if it was given one.
        deadline: when this attempt must be over: by its time-out or by ``deadline_at``, whichever is first; by the
            clock of the database.
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
    deadline: datetime | None
    headers: dict[str, Any]
    _link: JobLink

    @property
    def idempotency_key(self) -> str:
        """A text that is the same for every attempt of this job, for services that drop repeated requests."""
        return f"pgbroker-job-{self.id}"

    @cached_property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger named ``django_pgbroker.jobs.<job type>`` whose records carry the ids of this job as fields."""
        return JobLogger(self.job_type, self.log_fields)

    @property
    def log_fields(self) -> dict[str, Any]:
        """What log records of this job carry: its ids, named as in the events of the broker."""
        return {
            "job": self.id,
            "job_type": self.job_type,
            "attempt": self.attempt,
            "tenant": self.tenant,
            "correlation_id": self.correlation_id,
        }

    def should_stop(self) -> bool:
        """Whether the handler should end soon.

        It was cancelled or has timed out, the worker drains, or the lease is lost or about to be. No SQL.
        """
        return self._link.find_stop(self.lease_token) is not None

    def raise_if_stopped(self) -> None:
        """End the handler here if it should stop.

        A drained job is pending again and costs no attempt; a cancelled or timed out one ends as such.

        Raises:
            JobStopped: it should; let it pass.
        """
        if stop := self._link.find_stop(self.lease_token):
            raise JobStopped(stop)

    def heartbeat(self) -> None:
        """Say that the handler gets on; only of consequence where its job type has a ``heartbeat_timeout``. No SQL."""
        self._link.beat(self.lease_token)


def make_context(claim: ClaimedJob, job_type: str, queue: str, tenant: str, link: JobLink) -> JobContext:
    """The context of a claimed job that is about to begin."""
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
        deadline=link.deadline_of(claim),
        headers=json.loads(claim.headers) if claim.headers else {},
        _link=link,
    )


#: A function, so that a job which never asks for its context does not pay for it.
running_job: ContextVar[Callable[[], JobContext] | None] = ContextVar("pgbroker_running_job", default=None)


def current_job() -> JobContext | None:
    """The context of the job that runs here, sync or async; None outside of one."""
    get = running_job.get()
    return get() if get else None
