"""How the broker stands right now: queues, workers, unknown job types. Read by commands and screens."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.presence import Presence, judge_presence
from django_pgbroker.models import Queue, Worker
from django_pgbroker.models.clock import Clock
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.store.overview import find_unknown_types
from django_pgbroker.store.sampling import COUNT_BOUND

#: Samples older than this are called stale: the sampling duty writes every few seconds.
STALE_AFTER_SECONDS = 30.0

#: How many rows the search for unknown types looks at, in the head of each queue.
UNKNOWN_TYPES_BATCH = 5_000

#: More workers than this are not listed.
WORKER_LIMIT = 1_000

#: A worker found dead stays in the overview this long.
LOST_SHOWN_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class QueueOverview:
    """One queue with its sampled figures; ``None`` until the first sample, and 100,001 where counting stopped."""

    name: str
    oldest_pending_seconds: float | None
    pending: int | None
    running: int | None
    scheduled: int | None
    parked: int | None
    blocked: int | None
    sampled_seconds_ago: float | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    resume_at: datetime | None
    ageing_seconds: int

    @property
    def is_paused(self) -> bool:
        """Whether claims pass this queue by."""
        return self.paused_at is not None

    @property
    def is_stale(self) -> bool:
        """Whether the figures are missing or older than ``STALE_AFTER_SECONDS``."""
        return self.sampled_seconds_ago is None or self.sampled_seconds_ago > STALE_AFTER_SECONDS


@dataclass(frozen=True, slots=True)
class WorkerOverview:
    """One worker process that has not stopped, or was found dead within the last hour."""

    id: int
    name: str
    presence: Presence
    heartbeat_seconds_ago: float
    queues: Any
    concurrency: int
    running: int
    hostname: str
    process_id: int
    version: str
    started_seconds_ago: float
    ordered_concurrency: int | None
    paused_queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A job type with waiting jobs that no live worker takes: it does not know it, or leaves it out.

    ``waiting`` counts among the rows looked at (``UNKNOWN_TYPES_BATCH`` a queue); there may be more.
    """

    name: str
    waiting: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The broker at one moment. Queues come with the longest wait first."""

    queues: tuple[QueueOverview, ...]
    workers: tuple[WorkerOverview, ...]
    unknown_types: tuple[UnknownType, ...]


def name_unserved(queues: Iterable[QueueOverview], workers: Iterable[WorkerOverview]) -> frozenset[str]:
    """The queues with pending jobs that no live worker serves."""
    served = {name for worker in workers if worker.presence is not Presence.LOST for name in worker.queues}
    return frozenset(queue.name for queue in queues if queue.pending and queue.name not in served)


def read_overview(using: str | None = None) -> Overview:
    """How the broker stands, in three cheap reads whatever the number of jobs.

    Args:
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Raises:
        ConfigurationError: there is no such alias, or it is not PostgreSQL.
        django.db.DatabaseError: the database is away, or the broker's migrations have not run there.
    """
    database = using or get_settings().database
    unknown = find_unknown_types(open_caller_gateway(database), UNKNOWN_TYPES_BATCH)
    return Overview(
        queues=tuple(list_queues(database)),
        workers=tuple(list_workers(database)),
        unknown_types=tuple(UnknownType(row.name, row.waiting) for row in unknown),
    )


def describe_count(count: int | None) -> str:
    """A sampled count in words: ``?`` before the first sample, ``100,000+`` where counting stopped."""
    if count is None:
        return "?"
    return f"{COUNT_BOUND - 1:,}+" if count >= COUNT_BOUND else f"{count:,}"


def presence_of(worker: Worker, read_at: datetime) -> Presence:
    """The presence of ``worker`` at ``read_at``, a time of the database's clock."""
    return judge_presence(
        (read_at - worker.heartbeat_at).total_seconds(),
        worker.heartbeat_seconds,
        has_stopped=worker.stopped_at is not None,
        is_draining=any((worker.draining_at, worker.drain_requested_at, worker.stop_requested_at)),
        stop_reason=worker.stop_reason,
    )


def list_queues(database: str) -> list[QueueOverview]:
    """All queues, the longest wait first.

    Raises:
        django.db.DatabaseError: the database is away, or the broker's migrations have not run there.
    """
    queues = Queue.objects.using(database).annotate(read_at=Clock())
    return [
        QueueOverview(
            name=queue.name,
            oldest_pending_seconds=_seconds_between(queue.oldest_pending_at, queue.read_at),
            pending=queue.pending_count,
            running=queue.running_count,
            scheduled=queue.scheduled_count,
            parked=queue.parked_count,
            blocked=queue.blocked_count,
            sampled_seconds_ago=_seconds_between(queue.sampled_at, queue.read_at),
            paused_at=queue.paused_at,
            paused_by=queue.paused_by,
            pause_reason=queue.pause_reason,
            resume_at=queue.resume_at,
            ageing_seconds=queue.ageing_seconds,
        )
        for queue in queues.order_by(F("oldest_pending_at").asc(nulls_last=True), "name")
    ]


def list_workers(database: str) -> list[WorkerOverview]:
    """The workers that have not stopped or were found dead lately, by id; ``WORKER_LIMIT`` at most.

    Raises:
        django.db.DatabaseError: the database is away, or the broker's migrations have not run there.
    """
    lately_lost = Q(stop_reason=Presence.LOST.value, stopped_at__gt=Clock() - LOST_SHOWN_FOR)
    shown = Worker.objects.using(database).filter(Q(stopped_at__isnull=True) | lately_lost)
    workers = shown.annotate(read_at=Clock()).order_by("id")
    return [
        WorkerOverview(
            id=worker.pk,
            name=worker.name,
            presence=presence_of(worker, worker.read_at),
            heartbeat_seconds_ago=_seconds_between(worker.heartbeat_at, worker.read_at) or 0.0,
            queues=worker.queues,
            concurrency=worker.concurrency,
            running=worker.running_count,
            hostname=worker.hostname,
            process_id=worker.process_id,
            version=worker.version,
            started_seconds_ago=_seconds_between(worker.started_at, worker.read_at) or 0.0,
            ordered_concurrency=worker.ordered_concurrency,
            paused_queues=tuple(worker.paused_queues),
        )
        for worker in workers[:WORKER_LIMIT]
    ]


def _seconds_between(earlier: datetime | None, later: datetime) -> float | None:
    return None if earlier is None else max((later - earlier).total_seconds(), 0.0)
