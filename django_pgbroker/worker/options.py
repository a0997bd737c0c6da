"""What one worker is told at its start. Filled by the command, read by every part of the worker."""

import os
import socket
from dataclasses import dataclass, field

from django_pgbroker.conf import Settings, get_settings
from django_pgbroker.domain.errors import InvalidOption
from django_pgbroker.domain.executor_kinds import ExecutorKind, choose_executor
from django_pgbroker.domain.names import check_queue_name
from django_pgbroker.registry import JobType, registry
from django_pgbroker.worker.type_choice import choose_names

MOST_SLOTS = 1000
MOST_COROUTINES = 10_000
MOST_CHILDREN = 64
MOST_WEIGHT = 1000

#: How many handlers a pool of each kind can run at once at most.
MOST_PLACES = {
    ExecutorKind.THREAD: MOST_SLOTS,
    ExecutorKind.ASYNC: MOST_COROUTINES,
    ExecutorKind.PROCESS: MOST_CHILDREN,
}

_PLACES = {ExecutorKind.THREAD: "slots", ExecutorKind.ASYNC: "tasks", ExecutorKind.PROCESS: "child processes"}


@dataclass(frozen=True)
class QueueShare:
    """A queue that a worker serves, and its weight beside the others."""

    name: str
    weight: int = 1


def count_children() -> int:
    """How many child processes a worker has where nothing else is said: as many as there are processors."""
    return min(os.cpu_count() or 1, MOST_CHILDREN)


@dataclass(frozen=True)
class WorkerOptions:
    """How one worker runs.

    Args:
        queues: at least one.
        concurrency: how many handlers run at once in threads.
        async_concurrency: how many run at once on the event loop.
        child_processes: how many child processes there are for handlers that need one.
        database: the alias that holds the jobs.
        until_empty: end when the queues hold nothing that this worker could run, now or later.
        types: names or patterns of the job types that it takes; none means all that the code has.
        exclude_types: names or patterns of job types that it leaves to others.
        is_strict: a queue gets nothing while one before it has jobs; weights have no meaning then.
        max_jobs: make room for a fresh process after so many handlers.
        max_memory_mb: make room for a fresh process when this one occupies more MiB than that.
        max_hung: make room for a fresh process when so many handlers that were given up go on; by default half as many
            as run at once in threads.
        name: a label for people; the identity of a worker is its row, new at every start.
        settings: the settings of the broker.

    Raises:
        InvalidOption: a value is impossible.
    """

    queues: tuple[QueueShare, ...]
    concurrency: int = 10
    async_concurrency: int = 100
    child_processes: int = field(default_factory=count_children)
    database: str = field(default_factory=lambda: get_settings().database)
    until_empty: bool = False
    types: tuple[str, ...] = ()
    exclude_types: tuple[str, ...] = ()
    is_strict: bool = False
    max_jobs: int | None = None
    max_memory_mb: int | None = None
    max_hung: int | None = None
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")
    settings: Settings = field(default_factory=get_settings)

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= MOST_SLOTS:
            raise InvalidOption(f"concurrency must be from 1 to {MOST_SLOTS:,}, not {self.concurrency}")
        if not 1 <= self.async_concurrency <= MOST_COROUTINES:
            raise InvalidOption(
                f"async concurrency must be from 1 to {MOST_COROUTINES:,}, not {self.async_concurrency}"
            )
        if not 1 <= self.child_processes <= MOST_CHILDREN:
            raise InvalidOption(f"child processes must be from 1 to {MOST_CHILDREN}, not {self.child_processes}")
        for limit, name in (
            (self.max_jobs, "max jobs"),
            (self.max_memory_mb, "max memory"),
            (self.max_hung, "max hung"),
        ):
            if limit is not None and limit < 1:
                raise InvalidOption(f"{name} must be 1 or more, not {limit}; leave it out for no limit")
        if not self.queues:
            raise InvalidOption("a worker needs at least one queue, as in --queues default")
        if weighty := [share for share in self.queues if self.is_strict and share.weight != 1]:
            raise InvalidOption(
                f"strict order knows no weights: write {weighty[0].name} without :{weighty[0].weight}, or leave out "
                "--strict"
            )
        self.job_type_names()

    def describe_queues(self) -> str:
        """The queues for people, as ``default (weight 1), critical (weight 5)``."""
        if self.is_strict:
            return ", then ".join(share.name for share in self.queues)
        return ", ".join(f"{share.name} (weight {share.weight})" for share in self.queues)

    @property
    def kinds(self) -> list[ExecutorKind]:
        """The kinds of executors that some job type needs here; threads where no job type is known."""
        job_types = [registry.get(name) for name in self.job_type_names()]
        needed = {self.kind_of(job_type, share.name) for job_type in job_types for share in self.queues}
        return [kind for kind in ExecutorKind if kind in needed] or [ExecutorKind.THREAD]

    @property
    def capacity(self) -> int:
        """How many handlers run at once, in whatever way."""
        return sum(map(self.capacity_of, self.kinds))

    def describe_capacity(self) -> str:
        """How many handlers run at once for people, as ``10 slots, 100 tasks, 2 child processes``."""
        return ", ".join(f"{self.capacity_of(kind)} {_PLACES[kind]}" for kind in self.kinds)

    def kind_of(self, job_type: JobType, queue: str) -> ExecutorKind:
        """Where the jobs of one type in one queue run."""
        declared = (self.settings.queues or {}).get(queue)
        of_queue = declared.executor if declared else None
        return choose_executor(job_type.executor, of_queue, is_async=job_type.is_async)

    def capacity_of(self, kind: ExecutorKind) -> int:
        """How many handlers a pool of this kind runs at once."""
        match kind:
            case ExecutorKind.ASYNC:
                return self.async_concurrency
            case ExecutorKind.PROCESS:
                return self.child_processes
        return self.concurrency

    def job_type_names(self) -> list[str]:
        """Names and aliases of the job types that it takes, as the code declares them now.

        Raises:
            InvalidOption: a pattern fits no job type, or nothing is left.
        """
        return choose_names(self.types, self.exclude_types)


def parse_queues(text: str) -> tuple[QueueShare, ...]:
    """Read ``default,critical:5``: names with an optional weight, separated by commas.

    Raises:
        InvalidOption: a weight is no number from 1 to 1,000, or a queue is named twice or not at all.
        InvalidName: no queue can have such a name.
    """
    shares = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, colon, weight = part.rpartition(":")
        if not colon:
            name, weight = part, "1"
        if not (weight.isascii() and weight.isdigit() and 1 <= int(weight) <= MOST_WEIGHT):
            raise InvalidOption(
                f"{part!r}: the weight after the colon must be a whole number from 1 to {MOST_WEIGHT:,}, as in {name}:5"
            )
        check_queue_name(name)
        shares.append(QueueShare(name, int(weight)))
    names = [share.name for share in shares]
    if not names:
        raise InvalidOption("no queue is named; write --queues default or --queues default,critical:5")
    if repeated := {name for name in names if names.count(name) > 1}:
        raise InvalidOption(f"a queue is named twice: {', '.join(sorted(repeated))}")
    return tuple(shares)
