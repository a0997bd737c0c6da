"""What a handler may know of its own job: the ``ctx`` argument and ``current_job()``."""

import json
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, cast

from asgiref.sync import sync_to_async

from django_pgbroker.domain.progress import make_progress
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import JobStopped, StopKind
from django_pgbroker.worker.job_logging import JobLogger
from django_pgbroker.worker.link import JobLink
from django_pgbroker.worker.steps import JobMemory, Step


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
    _memory: JobMemory

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

    # -------------------------------------------------------------------------------------------- long jobs

    def progress(self, done: float, total: float | None = None, stage: str | None = None) -> None:
        """Tell how far the job is; no SQL, so as often as you like. It is written at most once a second.

        It is a heartbeat too.

        Args:
            done: units done so far, 0 or more.
            total: units in all, above 0, where that is known.
            stage: what the job is at, up to 200 characters.

        Raises:
            InvalidOption: a value is none of these.
            JobStopped: the job was cancelled or has timed out; let it pass. A draining worker lets the handler go on.
        """
        self._link.report_progress(self.id, self.lease_token, make_progress(done, total, stage))
        self._link.beat(self.lease_token)
        stop = self._link.find_stop(self.lease_token)
        if stop and stop.kind in (StopKind.CANCELLED, StopKind.TIMED_OUT):
            raise JobStopped(stop)

    def step(self, name: str) -> Step:
        """A part of the job that runs once and is remembered, with its result, over retries and deploys.

        ``with ctx.step("download") as step:`` (or ``async with``), then ``if step.is_new: step.result = fetch(url)``.
        After the block ``step.result`` is the result of now or of the earlier attempt. A block that raises remembers
        nothing. Inside ``transaction.atomic()`` the step is remembered if the transaction commits. Entering it ends
        the handler if the job should stop.

        Args:
            name: 1 to 200 printable characters; once in an attempt.

        Raises:
            InvalidName: no step can have this name.
            InvalidOption: on entering: the step was entered before in this attempt.
            InvalidPayload: on leaving: the result is no strict JSON.
            JobStopped: on entering, the job should stop; on leaving, its lease is lost. Let it pass.
            django.db.DatabaseError: the memory cannot be read or written.
        """
        return Step(self._memory, name)

    def run_step[**P, T](self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of ``function(*args, **kwargs)``, which is called only if no attempt has finished this step.

        Raises:
            Exception: as ``step``, and what the function raises.
        """
        with self.step(name) as step:
            if step.is_new:
                step.result = function(*args, **kwargs)
        return cast("T", step.result)

    async def arun_step[**P, T](
        self, name: str, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The same for a coroutine function, in an async handler."""
        async with self.step(name) as step:
            if step.is_new:
                step.result = await function(*args, **kwargs)
        return cast("T", step.result)

    @property
    def cursor(self) -> Any:
        """What ``save_cursor`` saved last, in this attempt or an earlier one; None at the start.

        Raises:
            django.db.DatabaseError: the memory cannot be read.
        """
        self._memory.read()
        return self._memory.cursor

    async def acursor(self) -> Any:
        """The same in async handlers."""
        await self._memory.aread()
        return self._memory.cursor

    def save_cursor(self, value: Any) -> None:
        """Remember how far a long loop is, so that another attempt goes on from there.

        Inside ``transaction.atomic()`` it is saved if the transaction commits; then a drain does not end the handler
        here, which would undo the save: call ``raise_if_stopped()`` after the block.

        Args:
            value: strict JSON.

        Raises:
            InvalidPayload: it is no strict JSON.
            JobStopped: after the save, if the handler should end; let it pass.
            django.db.DatabaseError: it cannot be written.
        """
        self._memory.save_cursor(value)

    async def asave_cursor(self, value: Any) -> None:
        """The same in async handlers."""
        await sync_to_async(self._memory.save_cursor)(value)


def make_context(
    claim: ClaimedJob, job_type: str, queue: str, tenant: str, *, link: JobLink, memory: JobMemory
) -> JobContext:
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
        _memory=memory,
    )


#: A function, so that a job which never asks for its context does not pay for it.
running_job: ContextVar[Callable[[], JobContext] | None] = ContextVar("pgbroker_running_job", default=None)


def current_job() -> JobContext | None:
    """The context of the job that runs here, sync or async; None outside of one."""
    get = running_job.get()
    return get() if get else None
