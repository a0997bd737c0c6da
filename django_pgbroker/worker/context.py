"""What a handler may know of its own job: the ``ctx`` argument and ``current_job()``."""

import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
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


class JobContext:
    """The job that is running, as its handler sees it.

    Args:
        claim: of the job, which is about to begin.
        job_type: its registered name.
        queue: where it was claimed.
        tenant: whose job it is.
        link: to the worker.
        make_memory: makes what the job remembers, if it is asked for.
    """

    def __init__(
        self,
        claim: ClaimedJob,
        job_type: str,
        queue: str,
        tenant: str,
        *,
        link: JobLink,
        make_memory: Callable[[ClaimedJob], JobMemory],
    ) -> None:
        #: The same over all attempts.
        self.id = claim.id
        self.job_type = job_type
        self.queue = queue
        self.tenant = tenant
        #: Counts from 1.
        self.attempt = claim.attempt
        self.max_attempts = claim.max_attempts
        #: Of this claim; a later claim has a larger one.
        self.lease_token = claim.lease_token
        #: As the producer gave it.
        self.correlation_id = claim.correlation_id
        self._claim = claim
        self._link = link
        self._make_memory = make_memory
        self._begun_at = time.monotonic()

    @property
    def deadline_at(self) -> datetime | None:
        """The latest finish of the job, if it was given one."""
        return None if self._claim.deadline_at is None else datetime.fromtimestamp(self._claim.deadline_at, UTC)

    @cached_property
    def deadline(self) -> datetime | None:
        """When this attempt must be over, by its time-out or by ``deadline_at``; by the clock of the database."""
        return self._link.deadline_of(self._claim, time.monotonic() - self._begun_at)

    @cached_property
    def headers(self) -> dict[str, Any]:
        """What travels beside the arguments."""
        return json.loads(self._claim.headers) if self._claim.headers else {}

    @cached_property
    def _memory(self) -> JobMemory:
        return self._make_memory(self._claim)

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


#: A function, so that a job which never asks for its context does not pay for it.
running_job: ContextVar[Callable[[], JobContext] | None] = ContextVar("pgbroker_running_job", default=None)


def current_job() -> JobContext | None:
    """The context of the job that runs here, sync or async; None outside of one."""
    get = running_job.get()
    return get() if get else None
