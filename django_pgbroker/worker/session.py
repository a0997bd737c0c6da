"""A worker's identity and its connection for turns. Opened at the start and again after every loss."""

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connections

from django_pgbroker import telemetry
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.registry import registry
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.runtime.database_clock import DatabaseClock
from django_pgbroker.runtime.new_names import declare_names
from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.identifiers import find_job_type_ids, find_queue_ids, find_tenant_name
from django_pgbroker.store.workers import (
    end_backend,
    end_worker,
    find_left_types,
    has_unfinished_work,
    register_worker,
)
from django_pgbroker.worker.executor import Directory
from django_pgbroker.worker.lane import Lane
from django_pgbroker.worker.options import WorkerOptions

VERSION = "0.1.0"

#: A statement of a turn takes milliseconds; one that takes this long is given up, and the turn tried again.
_STATEMENT_TIMEOUT = "10s"

#: A process that is frozen in the middle of a turn lets go of its rows after this, on servers that know the setting.
_TRANSACTION_TIMEOUT = "20s"

_HURRIED_SECONDS = 3.0


@dataclass
class Session:
    """What a connected worker knows.

    Args:
        options: of this worker.
        gateway: the connection for turns.
        worker_id: the presence row of this process start; kept over reconnects.
        directory: ids to job types, queues and tenants.
        lanes: the queues, once for each kind of pool that has job types in it.
        clock: of the database.
    """

    options: WorkerOptions
    gateway: Gateway
    worker_id: int
    directory: Directory
    lanes: list[Lane]
    clock: DatabaseClock

    def __post_init__(self) -> None:
        self.process_id = self.gateway.process_id

    def reconnect(self) -> None:
        """Replace a lost connection, and see to it that its last turn is over on the server too.

        The server may not have noticed the loss: a turn that waited for a lock would be committed after we have looked
        what became of it, with claims that nobody knows of. Behind a pooler that can happen: see ``doubt.LateTurns``.

        Raises:
            psycopg.Error: the database is still away.
        """
        lost_process_id = self.process_id
        self.close()
        self.gateway = _open(self.options)
        self.process_id = self.gateway.process_id
        if lost_process_id is not None:
            end_backend(self.gateway, lost_process_id)

    def ping(self) -> None:
        """Ask the database for a sign of life.

        Raises:
            psycopg.Error: it is away.
        """
        self.gateway.connection.execute("select 1", prepare=False)

    def hurry(self) -> None:
        """From now on give the server a few seconds for each word: this process is to end. Safe in a signal handler."""
        self.gateway.bound_silence(_HURRIED_SECONDS)

    def expect(self, queue_id: int, due_at: float) -> None:
        """A job of this queue will be due at this monotonic time."""
        for lane in self.lanes:
            if lane.queue_id == queue_id:
                lane.expect(due_at)

    def name_tenants(self, claims: Iterable[ClaimedJob]) -> None:
        """Learn the names of tenants that these jobs are the first of."""
        for tenant_id in {claim.tenant_id for claim in claims} - self.directory.tenants.keys():
            self.directory.tenants[tenant_id] = find_tenant_name(self.gateway, tenant_id)

    def has_strangers(self, claims: Iterable[ClaimedJob]) -> bool:
        """Whether ``name_tenants`` would have to ask for one of these jobs."""
        return not {claim.tenant_id for claim in claims} <= self.directory.tenants.keys()

    def has_unfinished_work(self) -> bool:
        """Whether a queue still holds jobs that this worker could run, now or later."""
        types = self.directory.job_types
        return any(has_unfinished_work(self.gateway, queue_id, types) for queue_id in self.directory.queues)

    def tell_left_jobs(self) -> None:
        """Log what stays in the queues although nothing in them is for this worker."""
        for queue_id, name in self.directory.queues.items():
            if job_types := find_left_types(self.gateway, queue_id):
                message = "jobs stay: the queue is paused, or this worker takes none of their type"
                telemetry.warning("worker.left_jobs", message, queue=name, job_types=", ".join(job_types))

    def end(self, reason: str) -> None:
        """Say good-bye in the presence row, and disconnect."""
        end_worker(self.gateway, self.worker_id, reason)
        self.close()

    def close(self) -> None:
        """Disconnect."""
        self.gateway.connection.close()


def open_session(options: WorkerOptions) -> Session:
    """Connect, make the rows of all names that this worker needs, and register it.

    Raises:
        psycopg.Error, django.db.Error: the database is away, or has not been migrated.
        ConfigurationError: a queue is not among those that the settings declare.
    """
    _check_queues(options)
    _check_limits(options)
    declare_names(options.database, queues=[share.name for share in options.queues])
    if not connections[options.database].in_atomic_block:
        connections[options.database].close()
    gateway = _open(options)
    queue_ids = find_queue_ids(gateway, [share.name for share in options.queues])
    type_ids = find_job_type_ids(gateway, options.job_type_names())
    directory = Directory(
        job_types={type_id: registry.get(name) for name, type_id in type_ids.items()},
        queues={queue_id: name for name, queue_id in queue_ids.items()},
        tenants={},
        database=options.database,
    )
    lanes = _make_lanes(options, directory, queue_ids)
    clock = DatabaseClock()
    worker_id, epoch_seconds = register_worker(
        gateway,
        name=options.name,
        hostname=socket.gethostname(),
        process_id=os.getpid(),
        version=VERSION,
        queues={share.name: share.weight for share in options.queues},
        job_type_ids=type_ids.values(),
        concurrency=sum(options.capacity_of(kind) for kind in {lane.kind for lane in lanes}),
        heartbeat_seconds=options.settings.heartbeat_seconds,
    )
    clock.learn(epoch_seconds)
    if not type_ids:
        message = "no job type is known: is each app with a jobs.py in INSTALLED_APPS? Nothing will be run"
        telemetry.warning("worker.no_job_types", message, worker=worker_id)
    telemetry.info("worker.started", "ready for jobs", worker=worker_id, name=options.name, job_types=len(type_ids))
    return Session(options, gateway, worker_id, directory, lanes, clock)


def _make_lanes(options: WorkerOptions, directory: Directory, queue_ids: Mapping[str, int]) -> list[Lane]:
    """A lane for each queue and each kind of pool that runs some of its jobs; where nothing is known, threads look."""
    types_of: dict[tuple[str, ExecutorKind], list[int]] = {}
    for share in options.queues:
        for type_id, job_type in directory.job_types.items():
            kind = options.kind_of(job_type, share.name)
            types_of.setdefault((share.name, kind), []).append(type_id)
    if not types_of:
        types_of = {(share.name, ExecutorKind.THREAD): [] for share in options.queues}
    settings = options.settings
    return [
        Lane(
            share.name, share.weight, queue_ids[share.name], settings.poll_min_seconds, settings.poll_max_seconds,
            kind=kind, job_type_ids=array_of_integers(types_of[share.name, kind]),
        )
        for kind in ExecutorKind
        for share in options.queues
        if (share.name, kind) in types_of
    ]  # fmt: skip


def _open(options: WorkerOptions) -> Gateway:
    return open_gateway(
        options.database,
        f"worker {options.name}",
        statement_timeout=_STATEMENT_TIMEOUT,
        transaction_timeout=_TRANSACTION_TIMEOUT,
    )


def _check_limits(options: WorkerOptions) -> None:
    limited = [name for name in options.job_type_names() if registry.get(name).session_limits]
    if limited and options.settings.is_pooled(options.database):
        raise ConfigurationError(
            f"job type {limited[0]!r} has a statement_timeout or lock_timeout, and the database is behind a pooler in "
            "transaction mode, where a setting of the session reaches other clients: use SET LOCAL in the handler's "
            "own transactions instead"
        )


def _check_queues(options: WorkerOptions) -> None:
    declared = options.settings.queues
    unknown = [share.name for share in options.queues if declared is not None and share.name not in declared]
    if unknown:
        raise ConfigurationError(
            f"the settings declare no queue {unknown[0]!r}; add it to PGBROKER['QUEUES'] or serve one of: "
            f"{', '.join(sorted(declared or ()))}"
        )
