"""Put one job into a queue, in the caller's transaction. The verb behind ``enqueue()`` and ``JobType.enqueue()``."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import Never

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.core.signals import setting_changed
from django.db import DatabaseError, InterfaceError

from django_pgbroker.conf import LONGEST_ATOMIC_SECONDS, LONGEST_TIMEOUT_SECONDS, MOST_ATTEMPTS, Settings, get_settings
from django_pgbroker.domain.errors import InvalidOption, InvalidPayload, UnknownQueue, show_value
from django_pgbroker.domain.job_spec import JobSpec
from django_pgbroker.domain.names import DEFAULT_TENANT, check_queue_name, check_tenant_name, suggest
from django_pgbroker.domain.options import (
    NO_OPTIONS,
    NOT_GIVEN,
    OPTION_NAMES,
    Duration,
    Instant,
    JobOptions,
    Moment,
    describe_unknown,
    read_duration,
    read_moment,
    read_seconds,
    read_text,
    read_time,
    read_whole,
)
from django_pgbroker.domain.payload import encode_arguments
from django_pgbroker.domain.priorities import resolve_priority
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.operations.handles import JobHandle
from django_pgbroker.plugins import capture_headers
from django_pgbroker.registry import JobType, registry
from django_pgbroker.runtime.announcer import announce_on_commit
from django_pgbroker.runtime.new_names import create_missing_names
from django_pgbroker.signals import job_enqueued
from django_pgbroker.store.enqueue import enqueue_job
from django_pgbroker.store.errors import EnqueueConflict, wrap_database_error

NO_ARGUMENTS: Mapping[str, object] = MappingProxyType({})

_NONE_GIVEN = (None,) * len(fields(JobOptions))


def enqueue(
    job_type: str | JobType,
    arguments: Mapping[str, object] = NO_ARGUMENTS,
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
) -> JobHandle:
    """Store a job on the caller's connection: it exists if and only if the caller's transaction commits.

    Args:
        job_type: a registered name or alias, or the decorated function.
        arguments: the handler's arguments by name; strict JSON (docs/reference/payload.md).
        queue, priority, delay, run_at, expires, timeout, deadline, max_attempts, tenant, correlation_id, created_by:
            as in ``JobOptions``; ``None`` leaves it to the job type and the settings.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Returns:
        A handle with the job's id.

    Raises:
        UnknownJobType, UnknownQueue, InvalidName, InvalidArguments, InvalidPayload, PayloadTooLarge, InvalidOption:
            before any SQL.
        EnqueueConflict: a concurrent transaction is in the way; run the caller's transaction again.
        BrokerDatabaseError: the database refused; a ``django.db.DatabaseError``, and the caller's writes are untouched.
    """
    for name in unknown:
        raise InvalidOption(
            f"{describe_unknown(name, OPTION_NAMES)} The handler's arguments go into the dict before it"
        )
    given = (
        queue, priority, delay, run_at, expires, timeout, deadline, max_attempts, tenant, correlation_id, created_by,
    )  # fmt: skip
    options = NO_OPTIONS if given == _NONE_GIVEN else JobOptions(*given)
    known = job_type if isinstance(job_type, JobType) else registry.get(job_type)
    if not isinstance(arguments, Mapping):
        raise InvalidPayload(
            "arguments", f"must be a mapping of the handler's arguments by name, not {show_value(arguments)}"
        )
    return store_job(known, known.bind((), arguments), options, using)


async def aenqueue(
    job_type: str | JobType,
    arguments: Mapping[str, object] = NO_ARGUMENTS,
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
) -> JobHandle:
    """``enqueue`` for async code: runs in the thread of Django's synchronous connection, as the async ORM does."""
    return await sync_to_async(enqueue, thread_sensitive=True)(
        job_type, arguments, queue=queue, priority=priority, delay=delay, run_at=run_at, expires=expires,
        timeout=timeout, deadline=deadline, max_attempts=max_attempts, tenant=tenant, correlation_id=correlation_id,
        created_by=created_by, using=using, **unknown,
    )  # fmt: skip


def store_job(job_type: JobType, arguments: Mapping[str, object], options: JobOptions, using: str | None) -> JobHandle:
    """Store a job whose arguments are bound already. Raises as ``enqueue`` does."""
    settings = get_settings()
    spec = _decide_by_defaults(job_type) if options is NO_OPTIONS else decide(job_type, options, settings)
    text = encode_arguments(arguments, settings.payload_limit_bytes)
    headers = _capture_headers(settings) if settings.middleware else None
    gateway = open_caller_gateway(using or settings.database)
    try:
        job_id = enqueue_job(gateway, spec, text, headers)
        if job_id is None:
            create_missing_names(gateway, spec)
            job_id = enqueue_job(gateway, spec, text, headers)
    except SynchronousOnlyOperation as error:
        raise SynchronousOnlyOperation(f"{error} In async code write: await aenqueue(...)") from error
    except (DatabaseError, InterfaceError) as error:
        raise wrap_database_error(error, f"enqueue a job of type {spec.job_type!r}") from error
    if job_id is None:
        raise EnqueueConflict(
            f"the queue {spec.queue!r}, the job type {spec.job_type!r} or the tenant {spec.tenant!r} has just been "
            "created, after the snapshot of this transaction. Roll back and run the transaction again"
        )
    if settings.listen:
        announce_on_commit(gateway.alias, spec.queue, gateway.connection)
    if job_enqueued.receivers:
        job_enqueued.send_robust(
            job_type, job_id=job_id, job_type=spec.job_type, queue=spec.queue, tenant=spec.tenant, attempt=0,
            using=gateway.alias,
        )  # fmt: skip
    return JobHandle(job_id, gateway.alias)


def _capture_headers(settings: Settings) -> str | None:
    headers = capture_headers(settings.middleware)
    try:
        return None if headers is None else encode_arguments(headers, settings.payload_limit_bytes)
    except InvalidPayload as error:
        path = error.path.replace("arguments", "headers of PGBROKER['MIDDLEWARE']", 1)
        raise InvalidPayload(path, error.hint) from None


@lru_cache(maxsize=1024)
def _decide_by_defaults(job_type: JobType) -> JobSpec:
    """What ``decide`` says of most jobs, once for each job type."""
    return decide(job_type, NO_OPTIONS, get_settings())


def _forget_defaults(**_: object) -> None:
    _decide_by_defaults.cache_clear()


setting_changed.connect(_forget_defaults)


def decide(job_type: JobType, options: JobOptions, settings: Settings) -> JobSpec:
    """All of a job but its arguments, from what the caller, the job type and the settings say, in this order."""
    return JobSpec(
        queue=_decide_queue(job_type, options.queue, settings),
        job_type=job_type.name,
        tenant=DEFAULT_TENANT if options.tenant is None else check_tenant_name(options.tenant),
        version=job_type.version,
        priority=_decide_priority(job_type, options.priority, settings),
        max_attempts=read_whole(
            "max_attempts",
            _first(options.max_attempts, job_type.max_attempts, settings.default_max_attempts),
            1,
            MOST_ATTEMPTS,
        ),
        timeout_seconds=_decide_timeout(job_type, options.timeout, settings),
        available=_decide_start(options),
        expires=read_moment("expires", options.expires),
        deadline=read_moment("deadline", options.deadline),
        correlation_id=read_text("correlation_id", options.correlation_id),
        created_by=read_text("created_by", options.created_by),
    )


def _decide_timeout(job_type: JobType, asked: Duration | None, settings: Settings) -> int:
    longest, default = LONGEST_TIMEOUT_SECONDS, settings.default_timeout_seconds
    if job_type.is_atomic:
        longest, default = LONGEST_ATOMIC_SECONDS, settings.atomic_timeout_seconds
    return read_seconds("timeout", _first(asked, job_type.timeout_seconds, default), 1, longest)


def _decide_queue(job_type: JobType, asked: str | None, settings: Settings) -> str:
    queue = check_queue_name(
        _first(asked, _find_route(job_type.name, settings), job_type.queue, settings.default_queue)
    )
    if settings.queues is not None and queue not in settings.queues:
        raise UnknownQueue(
            f"the queue {queue!r} is not declared in PGBROKER['QUEUES']. {suggest(queue, settings.queues)}".rstrip()
        )
    return queue


def _decide_priority(job_type: JobType, asked: int | str | None, settings: Settings) -> int:
    declared = settings.default_priority if job_type.priority is None else job_type.priority
    return resolve_priority(declared if asked is None else asked, settings.priority_levels)


def _find_route(name: str, settings: Settings) -> str | None:
    if not settings.routes:
        return None
    if name in settings.routes:
        return settings.routes[name]
    return next((queue for pattern, queue in settings.routes.items() if fnmatchcase(name, pattern)), None)


def _decide_start(options: JobOptions) -> Instant:
    if options.delay is not None:
        return Instant(seconds=read_duration("delay", options.delay))
    return NOT_GIVEN if options.run_at is None else Instant(at=read_time("run_at", options.run_at))


def _first[T](*candidates: T | None) -> T:
    for candidate in candidates:
        if candidate is not None:
            return candidate
    raise LookupError("the last candidate comes from the settings and is always there")
