"""``@job``: turn a function into a job type that can still be called, and be enqueued. For the jobs.py of apps."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Never

from asgiref.sync import sync_to_async

from django_pgbroker.conf import LONGEST_ATOMIC_SECONDS, LONGEST_TIMEOUT_SECONDS, MOST_ATTEMPTS, MOST_INTERRUPTIONS
from django_pgbroker.domain.backoff import Exponential, RetryPolicy
from django_pgbroker.domain.errors import ConfigurationError, InvalidName, InvalidOption
from django_pgbroker.domain.executor_kinds import ExecutorKind, read_executor
from django_pgbroker.domain.names import check_queue_name
from django_pgbroker.domain.options import (
    NO_OPTIONS,
    OPTION_NAMES,
    Duration,
    JobOptions,
    Moment,
    describe_unknown,
    read_seconds,
    read_whole,
)
from django_pgbroker.domain.priorities import resolve_priority
from django_pgbroker.operations.enqueue import store_job
from django_pgbroker.operations.handles import JobHandle
from django_pgbroker.registry import JobType, registry

_SHORTEST_LIMIT_SECONDS = 0.001

#: The keywords of ``@job``.
_DECLARED_OPTIONS = (
    "queue", "priority", "max_attempts", "timeout", "statement_timeout", "lock_timeout", "heartbeat_timeout",
    "max_interruptions", "retry", "version", "store_result", "aliases", "executor", "atomic",
)  # fmt: skip


@dataclass(frozen=True)
class Producer:
    """A job type together with options for its next jobs; made by ``using()``."""

    job_type: JobType
    options: JobOptions = NO_OPTIONS
    using: str | None = None

    def enqueue(self, *args: Any, **kwargs: Any) -> JobHandle:
        """Store a job with the handler's arguments. Raises as ``operations.enqueue.enqueue`` does."""
        return store_job(self.job_type, self.job_type.bind(args, kwargs), self.options, self.using)

    async def aenqueue(self, *args: Any, **kwargs: Any) -> JobHandle:
        """``enqueue`` for async code."""
        return await sync_to_async(self.enqueue, thread_sensitive=True)(*args, **kwargs)


class DeclaredJob[**P, R](JobType):
    """A decorated handler: call it as the plain function, or enqueue it."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the handler here and now; nothing is stored."""
        return self.handler(*args, **kwargs)  # type: ignore[no-any-return]

    def enqueue(self, *args: Any, **kwargs: Any) -> JobHandle:
        """Store a job with the handler's arguments. Raises as ``operations.enqueue.enqueue`` does."""
        return Producer(self).enqueue(*args, **kwargs)

    async def aenqueue(self, *args: Any, **kwargs: Any) -> JobHandle:
        """``enqueue`` for async code."""
        return await Producer(self).aenqueue(*args, **kwargs)

    def using(
        self,
        *,
        queue: str | None = None,
        priority: int | str | None = None,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        expires: Moment | None = None,
        timeout: Duration | None = None,
        deadline: Moment | None = None,
        max_attempts: int | None = None,
        tenant: str | None = None,
        correlation_id: str | None = None,
        created_by: str | None = None,
        using: str | None = None,
        **unknown: Never,
    ) -> Producer:
        """The job type with options, as in ``JobOptions``; its ``enqueue`` takes the handler's arguments alone.

        Args:
            queue, priority, delay, run_at, expires, timeout, deadline, max_attempts, tenant, correlation_id,
                created_by: as in ``JobOptions``.
            using: alias of the database; by default ``PGBROKER["DATABASE"]``.
            unknown: refused.

        Raises:
            InvalidOption: an option that does not exist, or options that contradict each other.
        """
        for name in unknown:
            raise InvalidOption(
                f"{describe_unknown(name, OPTION_NAMES)} The handler's arguments go to the enqueue(...) behind it"
            )
        options = JobOptions(
            queue=queue, priority=priority, delay=delay, run_at=run_at, expires=expires, timeout=timeout,
            deadline=deadline, max_attempts=max_attempts, tenant=tenant, correlation_id=correlation_id,
            created_by=created_by,
        )  # fmt: skip
        return Producer(self, options, using)


def job[**P, R](
    name: str,
    *,
    queue: str | None = None,
    priority: int | str | None = None,
    max_attempts: int | None = None,
    timeout: Duration | None = None,
    statement_timeout: Duration | None = None,
    lock_timeout: Duration | None = None,
    heartbeat_timeout: Duration | None = None,
    max_interruptions: int | None = None,
    retry: RetryPolicy = Exponential(),  # noqa: B008 - frozen
    version: int = 1,
    store_result: bool = True,
    aliases: tuple[str, ...] | list[str] = (),
    executor: ExecutorKind | str | None = None,
    atomic: bool = False,
    **unknown: Never,
) -> Callable[[Callable[P, R]], DeclaredJob[P, R]]:
    """Register the decorated function, sync or async, as the handler of a job type.

    A parameter ``ctx`` is filled by the worker with the job's context; it is no argument of the job.

    Args:
        name: stable and explicit, such as ``"shop.send_receipt"``; the database stores it.
        queue, priority, max_attempts: defaults of its jobs; ``None`` means the setting's.
        timeout: the longest attempt of its jobs, a timedelta or a number, in whole seconds; a default too.
        statement_timeout: the longest statement of the handler on any of its PostgreSQL connections, a timedelta or
            seconds; one that takes longer ends the attempt as timed out, unless the handler catches its error.
        lock_timeout: the longest wait of such a statement for a lock, likewise.
        heartbeat_timeout: the longest time between two ``ctx.heartbeat()`` of the handler, a timedelta or a number, in
            whole seconds; after it the lease is not renewed any more. ``None`` renews for as long as the handler runs.
        max_interruptions: how often a job may be interrupted by stopping workers before it is a dead letter.
        retry: how long to wait after a failed attempt.
        version: of the arguments' shape, stored with each job.
        store_result: whether the answer is kept.
        aliases: former names, so that stored jobs are still run.
        executor: where the handler runs: ``"thread"``, ``"async"`` (the event loop; for ``async def`` alone) or
            ``"process"`` (a child process). ``None`` leaves it to the queue's setting; without one it is the event loop
            for ``async def`` and a thread for all else.
        atomic: whether the handler's writes to the database of the jobs, the jobs it enqueues there and the acknowledge
            are one commit: they happen exactly once. For short work: an open transaction holds back VACUUM, so the
            time-out is ``ATOMIC_TIMEOUT_SECONDS`` unless one is given, and an hour at most.
        unknown: refused.

    Raises:
        ConfigurationError: a name, default or signature is impossible, or an option does not exist.
        DuplicateJobType: the name or an alias is taken.
    """
    if not isinstance(name, str):
        raise ConfigurationError(f'@job needs an explicit name, as in @job("shop.send_receipt"), not {name!r}')
    for word in unknown:
        raise ConfigurationError(f"job type {name!r}: {describe_unknown(word, _DECLARED_OPTIONS)}")
    _check_defaults(name, queue, priority, max_attempts, max_interruptions)
    timeout_seconds = _read_span(name, "timeout", timeout)
    heartbeat_timeout_seconds = _read_span(name, "heartbeat_timeout", heartbeat_timeout)
    statement_timeout_seconds = _read_limit(name, "statement_timeout", statement_timeout)
    lock_timeout_seconds = _read_limit(name, "lock_timeout", lock_timeout)
    executor_kind = _read_executor(name, executor)

    def declare(handler: Callable[P, R]) -> DeclaredJob[P, R]:
        declared: DeclaredJob[P, R] = DeclaredJob(
            name=name,
            handler=handler,
            aliases=tuple(aliases),
            queue=queue,
            priority=priority,
            max_attempts=max_attempts,
            timeout_seconds=timeout_seconds,
            statement_timeout_seconds=statement_timeout_seconds,
            lock_timeout_seconds=lock_timeout_seconds,
            heartbeat_timeout_seconds=heartbeat_timeout_seconds,
            max_interruptions=max_interruptions,
            retry_policy=retry,
            version=version,
            store_result=store_result,
            executor=executor_kind,
            is_atomic=_read_atomic(name, atomic, timeout_seconds),
        )
        _look_like(declared, handler)
        return registry.register(declared)

    return declare


def _look_like(declared: JobType, handler: Callable[..., Any]) -> None:
    for attribute in functools.WRAPPER_ASSIGNMENTS:
        if hasattr(handler, attribute):
            object.__setattr__(declared, attribute, getattr(handler, attribute))
    object.__setattr__(declared, "__wrapped__", handler)


def _check_defaults(
    name: str, queue: object, priority: object, max_attempts: object, max_interruptions: object
) -> None:
    try:
        if queue is not None:
            check_queue_name(queue)
        # a named level belongs to the settings, which are read when a job is enqueued
        if priority is not None and not isinstance(priority, str):
            resolve_priority(priority, {})  # type: ignore[arg-type]
        if max_attempts is not None:
            read_whole("max_attempts", max_attempts, 1, MOST_ATTEMPTS)
        if max_interruptions is not None:
            read_whole("max_interruptions", max_interruptions, 0, MOST_INTERRUPTIONS)
    except (InvalidName, InvalidOption) as error:
        raise ConfigurationError(f"job type {name!r}: {error}") from None


def _read_atomic(name: str, value: object, timeout_seconds: int | None) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError(f"job type {name!r}: atomic must be True or False, not {value!r}")
    if value and timeout_seconds is not None and timeout_seconds > LONGEST_ATOMIC_SECONDS:
        raise ConfigurationError(
            f"job type {name!r}: a transactional job may take {LONGEST_ATOMIC_SECONDS:,} s at most, not "
            f"{timeout_seconds:,}: its open transaction would hold back VACUUM for all tables. "
            "Split the work, or leave out atomic"
        )
    return value


def _read_executor(name: str, value: object) -> ExecutorKind | None:
    try:
        return read_executor(value)
    except InvalidOption as error:
        raise ConfigurationError(f"job type {name!r}: executor {error}") from None


def _read_limit(name: str, option: str, value: Duration | None) -> float | None:
    """A limit of the server, which counts in milliseconds; 0 would switch it off."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds is None:
        return None
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not _SHORTEST_LIMIT_SECONDS <= seconds <= LONGEST_TIMEOUT_SECONDS:
        raise ConfigurationError(
            f"job type {name!r}: {option} must be a timedelta or a number of seconds from {_SHORTEST_LIMIT_SECONDS} to "
            f"{LONGEST_TIMEOUT_SECONDS:,}, not {value!r}"
        )
    return seconds


def _read_span(name: str, option: str, value: Duration | None) -> int | None:
    try:
        return None if value is None else read_seconds(option, value, 1, LONGEST_TIMEOUT_SECONDS)
    except InvalidOption as error:
        raise ConfigurationError(f"job type {name!r}: {error}") from None
