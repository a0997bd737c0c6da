"""How many connections workers need at most, beside what the server grants. Asked before they start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connections

from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.store.connection_limits import ConnectionLimit, find_connection_limits
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.worker.options import WorkerOptions

#: Of each process: turns, heartbeats, and announcements while there are some.
_ALWAYS = 3

#: So many of the processes of one supervisor run the duties: one may die, and they go on.
DUTY_PROCESSES = 2

#: What psycopg's pool takes where the settings do not say how large it is.
_POOL_SIZE = 4

_WAY_UP = {
    "server": "raise max_connections of the server",
    "role": "raise the connection limit of the role {name!r}",
    "database": "raise the connection limit of the database {name!r}",
}


@dataclass(frozen=True)
class Budget:
    """Connections that worker processes need together, and the limits that hold for them.

    Args:
        needed: at most, when every slot uses the database.
        limits: none where they are not known.
    """

    needed: int
    limits: Sequence[ConnectionLimit] = ()

    def check(self) -> None:
        """Refuse what no limit could ever grant.

        Raises:
            ConfigurationError: more is needed than a limit allows; the message says what to do.
        """
        if not self.limits or self.needed <= (least := min(self.limits, key=lambda limit: limit.allowed)).allowed:
            return
        raise ConfigurationError(
            f"this needs up to {self.needed:,} connections, and {_describe(least)} allows {least.allowed:,}: "
            "lower --processes or --concurrency (or --child-processes), "
            f"{_WAY_UP[least.kind].format(name=least.name)}, or "
            "let the slots share a few by OPTIONS['pool'] in DATABASES"
        )

    def warning(self) -> str:
        """A sentence where less is free at this moment than may be needed; else empty."""
        if not self.limits:
            return ""
        least = min(self.limits, key=lambda limit: limit.allowed - limit.used)
        free = max(least.allowed - least.used, 0)
        if self.needed <= free:
            return ""
        return (
            f"only {free:,} of the {least.allowed:,} connections that {_describe(least)} allows are free now, and up "
            f"to {self.needed:,} may be needed: jobs may fail for want of one."
        )

    def __str__(self) -> str:
        text = f"At most {self.needed:,} connections"
        if not self.limits:
            return text
        least = min(self.limits, key=lambda limit: limit.allowed - limit.used)
        return f"{text}; {_describe(least)} allows {least.allowed:,}, {least.used:,} in use"


def make_budget(
    options: WorkerOptions, processes: int = 1, *, with_maintenance: bool, asks_limits: bool = True
) -> Budget:
    """Count what worker processes of these options need, and ask the server what it grants.

    Args:
        options: of each process.
        processes: how many run.
        with_maintenance: whether the first of them run the duties.
        asks_limits: whether the server can be asked; behind a pooler it never is, for the connections are the pooler's.

    Raises:
        django.db.DatabaseError, django.db.InterfaceError: as the server answered.
    """
    alias, settings = options.database, options.settings
    pool = connections[alias].settings_dict["OPTIONS"].get("pool")
    needed = count_connections(
        _count_slots(options),
        processes,
        children=options.child_processes if ExecutorKind.PROCESS in options.kinds else 0,
        has_listener=settings.listen and settings.listening_alias(alias) == alias,
        has_maintenance=with_maintenance,
        pool=pool,
    )
    is_known = asks_limits and not settings.is_pooled(alias)
    return Budget(needed, find_connection_limits(CallerGateway(alias)) if is_known else ())


def count_connections(
    concurrency: int,
    processes: int = 1,
    *,
    children: int = 0,
    has_listener: bool,
    has_maintenance: bool,
    pool: Mapping[str, Any] | bool | None = None,
) -> int:
    """The most connections of so many processes to the database with the jobs.

    Args:
        concurrency: threads of each process in which handlers use the database; each holds one connection of Django's.
        processes: how many run.
        children: child processes of each, which hold one connection each, or a pool.
        has_listener: whether they LISTEN.
        has_maintenance: whether the first of them run the duties.
        pool: ``OPTIONS["pool"]`` of the alias.
    """
    of_handlers = _count_of_handlers(concurrency, pool) + children * _count_of_handlers(1, pool)
    of_one = _ALWAYS + has_listener + of_handlers
    return processes * of_one + (min(processes, DUTY_PROCESSES) if has_maintenance else 0)


def _count_slots(options: WorkerOptions) -> int:
    """Threads of one process in which handlers use the database; those of an event loop share a few."""
    threads = options.concurrency if ExecutorKind.THREAD in options.kinds else 0
    if ExecutorKind.ASYNC not in options.kinds:
        return threads
    return threads + min(options.async_concurrency, options.settings.async_database_threads)


def _count_of_handlers(concurrency: int, pool: Mapping[str, Any] | bool | None) -> int:
    if not pool or not concurrency:
        return concurrency
    sizes = pool if isinstance(pool, Mapping) else {}
    least: int = sizes.get("min_size", _POOL_SIZE)
    most: int = sizes.get("max_size") or least
    return max(least, min(concurrency, most))


def _describe(limit: ConnectionLimit) -> str:
    return f"the {limit.kind} {limit.name!r}" if limit.name else f"the {limit.kind}"
