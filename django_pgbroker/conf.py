"""``settings.PGBROKER`` as one frozen value, for everything above floor 0; unknown or impossible keys are errors."""

from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Any

from django.conf import settings as django_settings
from django.core.signals import setting_changed

from django_pgbroker.domain.errors import ConfigurationError, InvalidName, InvalidOption, show_value
from django_pgbroker.domain.executor_kinds import ExecutorKind, read_executor
from django_pgbroker.domain.names import check_queue_name, suggest
from django_pgbroker.domain.priorities import resolve_priority

#: 200 steps of priority times this is 6.3 years: ``claim_order`` stays a date that PostgreSQL and Python can hold.
LONGEST_AGEING_SECONDS = 1_000_000
LONGEST_TIMEOUT_SECONDS = 30 * 24 * 3600
#: An open transaction holds back VACUUM.
LONGEST_ATOMIC_SECONDS = 3600
MOST_ATTEMPTS = 1000
MOST_INTERRUPTIONS = 1000

#: How history can be parted, and how many days that is at least.
PARTITION_PERIODS = {"day": 1, "week": 7, "month": 28}

#: Every open transaction that looks a job up locks four relations in each partition; 40 are comfortable.
MOST_PARTITIONS = 200


@dataclass(frozen=True)
class QueueSettings:
    """What the settings say of one declared queue."""

    ageing_seconds: int
    executor: ExecutorKind | None = None


#: What ``QUEUES`` may say of a queue.
_QUEUE_OPTIONS = ("ageing_seconds", "executor")


def _setting(
    default: Any, purpose: str, low: float | None = None, high: float | None = None, *, is_optional: bool = False
) -> Any:
    metadata = {"purpose": purpose, "low": low, "high": high, "default": default, "is_optional": is_optional}
    if isinstance(default, dict):
        return field(default_factory=lambda: MappingProxyType(dict(default)), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """The settings of the broker; each field is a key of ``settings.PGBROKER`` in lower case."""

    database: str = _setting(
        "default",
        "Alias in `DATABASES` of the database that holds the jobs. A job commits with your writes only when their "
        "transaction is on this alias too.",
    )
    queues: Mapping[str, QueueSettings] | None = _setting(
        None,
        "The queues that exist: a list of names, or a dict of name to options (`ageing_seconds`, `executor`). "
        "Where it is given, enqueueing to another queue is an error; where not, a queue begins with its first job.",
    )
    routes: Mapping[str, str] = _setting(
        {},
        "Job type, or pattern with `*`, to queue; stronger than the queue in `@job`. An exact name wins, then order.",
    )
    default_queue: str = _setting("default", "Queue of jobs for which nothing else names one.")
    default_priority: int = _setting(
        0, "Priority of jobs for which nothing else names one; higher runs first.", -100, 100
    )
    priority_levels: Mapping[str, int] = _setting(
        {"user": 50, "normal": 0, "backfill": -50}, "Names for priorities; replaces the default names."
    )
    default_max_attempts: int = _setting(3, "Attempts before a failing job is a dead letter.", 1, MOST_ATTEMPTS)
    default_timeout_seconds: int = _setting(
        300, "Longest attempt of a job for which nothing else names one.", 1, LONGEST_TIMEOUT_SECONDS
    )
    atomic_timeout_seconds: int = _setting(
        30, "Longest attempt of a transactional job (`atomic=True`) that names none.", 1, LONGEST_ATOMIC_SECONDS
    )
    ageing_seconds: int = _setting(
        60, "Waiting this long is worth one step of priority; 0 turns priority off. Used when a queue is created.",
        0, LONGEST_AGEING_SECONDS,
    )  # fmt: skip
    payload_limit_bytes: int = _setting(65_536, "Largest arguments of a job, as JSON in UTF-8.", 256, 16_777_216)
    result_limit_bytes: int = _setting(65_536, "Largest result of a job, as JSON in UTF-8.", 256, 16_777_216)
    lease_seconds: float = _setting(60, "A job whose worker has been silent for this long is taken back.", 2, 86_400)
    heartbeat_seconds: float = _setting(
        12, "A worker reports and renews its leases this often; at most half of `LEASE_SECONDS`.", 0.5, 3_600
    )
    reclaim_interval_seconds: float = _setting(5, "Lapsed leases are looked for this often.", 0.1, 3_600)
    stop_grace_seconds: float = _setting(
        10,
        "A handler that was cancelled or timed out has this long to end: after half of it `JobStopped` is raised in "
        "its thread, after all of it the handler is given up.",
        0.1, 3_600,
    )  # fmt: skip
    take_back_overdue: bool = _setting(
        True,
        "Whether a running job that its worker does not stop, long after its time-out, is taken back from it; else it "
        "is only told in the log.",
    )
    async_database_threads: int = _setting(
        5, "The jobs on a worker's event loop share so many threads, each with connections of its own, for sync code "
        "and Django's `a…` methods.",
        1, 100,
    )  # fmt: skip
    child_memory_limit_mb: int | None = _setting(
        None,
        "Most memory (`RLIMIT_DATA`) of a child process; a handler that wants more fails with `MemoryError`, and the "
        "child is replaced. `None` sets no limit.",
        64, 1_048_576, is_optional=True,
    )  # fmt: skip
    child_max_jobs: int | None = _setting(
        None, "A child process is replaced after so many jobs. `None`: never.", 1, 1_000_000_000, is_optional=True
    )
    drain_seconds: float = _setting(30, "A stopping worker lets its jobs run for this long.", 0, 86_400)
    poll_min_seconds: float = _setting(0.01, "Shortest pause between two looks for work.", 0.001, 60)
    poll_max_seconds: float = _setting(5, "Longest pause between two looks for work.", 0.01, 3_600)
    prefetch_limit: int = _setting(1000, "Most jobs that a worker claims ahead of its free slots.", 0, 10_000)
    partition_period: str = _setting("week", "How much history one partition holds: `day`, `week` or `month`.")
    partition_days_ahead: int = _setting(7, "Partitions exist this many days ahead.", 1, 366)
    retention_days: int | None = _setting(
        90,
        "History older than this goes, a whole partition at a time; dead letters never go by age. `None` keeps all.",
        1, 3_650, is_optional=True,
    )  # fmt: skip
    middleware: tuple[str, ...] = _setting(
        (), "Dotted paths of what is called around every handler, the outermost first (docs/how-to/middleware.md)."
    )
    permission_hook: str | None = _setting(
        None,
        "Dotted path of a function that is asked as well whether a user may do something: `hook(user, verb, queue=…, "
        "tenant=…)`, each `None` where the question is general (docs/how-to/permissions.md).",
    )
    bulk_queue: str | None = _setting(
        None,
        "Queue of the broker's own jobs, which carry out verbs on very many jobs. `None`: `DEFAULT_QUEUE`. Choose one "
        "that is rarely paused.",
    )
    listen: bool = _setting(
        True, "Whether new jobs are announced by NOTIFY and workers LISTEN; polling finds them either way."
    )
    transaction_pooler: bool = _setting(
        False, "Whether `DATABASE` is reached through a pooler in transaction mode, such as PgBouncer."
    )
    listen_database: str | None = _setting(
        None,
        "Alias in `DATABASES` of a direct connection to the same database, on which workers LISTEN. `None`: on "
        "`DATABASE`, or not at all where that is behind a pooler in transaction mode.",
    )

    def is_pooled(self, alias: str) -> bool:
        """Whether a pooler in transaction mode stands before the database ``alias``."""
        return self.transaction_pooler and alias == self.database

    def listening_alias(self, alias: str) -> str | None:
        """Where a worker of the database ``alias`` can LISTEN; ``None`` where it can not."""
        if alias == self.database and self.listen_database is not None:
            return self.listen_database
        return None if self.is_pooled(alias) else alias


@cache
def get_settings() -> Settings:
    """The settings of the broker, read once and again when a test overrides ``PGBROKER``.

    Raises:
        ConfigurationError: a key is unknown, a value impossible, or two values contradict each other.
    """
    return read_settings(getattr(django_settings, "PGBROKER", {}), django_settings.DATABASES)


def read_settings(given: Any, databases: Iterable[str]) -> Settings:
    """Turn a ``PGBROKER`` dict into ``Settings``.

    Args:
        given: the dict, with keys in upper case.
        databases: the aliases that exist.

    Raises:
        ConfigurationError: as ``get_settings`` says.
    """
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"PGBROKER must be a dict, not {type(given).__name__}")
    known = {each.name.upper(): each for each in fields(Settings)}
    for key in given:
        if key not in known:
            raise ConfigurationError(f"PGBROKER has no key {key!r}. {suggest(str(key), known)}".rstrip())
    checked = {known[key].name: _check_value(key, known[key], value) for key, value in given.items()}
    ageing = checked.get("ageing_seconds", Settings.ageing_seconds)
    for key, read in _READERS.items():
        if key in given:
            checked[key.lower()] = read(given[key], ageing)
    result = Settings(**checked)
    _check_together(result, databases)
    return result


def _check_value(key: str, declared: Field[Any], value: Any) -> Any:
    default, low, high = (declared.metadata[part] for part in ("default", "low", "high"))
    if value is None and declared.metadata["is_optional"]:
        return None
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise _bad(key, value, "must be True or False")
    elif isinstance(default, str) or (declared.type == str | None and value is not None):
        if not isinstance(value, str) or not value:
            raise _bad(key, value, "must be a text")
    elif low is not None:
        is_whole = declared.type in (int, int | None)
        kinds = (int,) if is_whole else (int, float)
        if type(value) not in kinds or not low <= value <= high:
            way_out = ", or None" if declared.metadata["is_optional"] else ""
            raise _bad(key, value, f"must be a {'whole ' if is_whole else ''}number from {low:,} to {high:,}{way_out}")
    return value


def _bad(key: str, value: object, rule: str) -> ConfigurationError:
    return ConfigurationError(f"PGBROKER[{key!r}] {rule}, not {show_value(value)}")


def _read_queues(value: Any, ageing: int) -> Mapping[str, QueueSettings] | None:
    if value is None:
        return None
    if isinstance(value, list | tuple | set | frozenset):
        value = {name: {} for name in value}
    if not isinstance(value, Mapping) or not value:
        raise _bad("QUEUES", value, "must be None, a list of names, or a dict of name to options")
    return MappingProxyType(
        {_queue("QUEUES", name): _read_queue(name, options, ageing) for name, options in value.items()}
    )


def _read_queue(name: str, options: Any, ageing: int) -> QueueSettings:
    if not isinstance(options, Mapping):
        raise _bad("QUEUES", options, f"must give a dict of options for {name!r}")
    for option in options:
        if option not in _QUEUE_OPTIONS:
            known = ", ".join(map(repr, _QUEUE_OPTIONS))
            raise ConfigurationError(f"PGBROKER['QUEUES'][{name!r}] has no option {option!r}. Known: {known}.")
    seconds = options.get("ageing_seconds", ageing)
    if type(seconds) is not int or not 0 <= seconds <= LONGEST_AGEING_SECONDS:
        raise _bad(
            "QUEUES",
            seconds,
            f"[{name!r}]['ageing_seconds'] must be a whole number from 0 to {LONGEST_AGEING_SECONDS:,}",
        )
    try:
        return QueueSettings(seconds, read_executor(options.get("executor")))
    except InvalidOption as error:
        raise ConfigurationError(f"PGBROKER['QUEUES'][{name!r}]['executor']: {error}") from None


def _read_routes(value: Any, _: int) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(pattern, str) and pattern for pattern in value):
        raise _bad("ROUTES", value, "must be a dict of job type or pattern to queue")
    return MappingProxyType({pattern: _queue("ROUTES", queue) for pattern, queue in value.items()})


def _read_levels(value: Any, _: int) -> Mapping[str, int]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name for name in value):
        raise _bad("PRIORITY_LEVELS", value, "must be a dict of name to number")
    try:
        return MappingProxyType({name: resolve_priority(number, {}) for name, number in value.items()})
    except InvalidOption as error:
        raise ConfigurationError(f"PGBROKER['PRIORITY_LEVELS']: {error}") from None


def _read_middleware(value: Any, _: int) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(path, str) and "." in path for path in value):
        raise _bad("MIDDLEWARE", value, "must be a list of dotted paths to classes or functions")
    if repeated := {path for path in value if value.count(path) > 1}:
        raise ConfigurationError(f"PGBROKER['MIDDLEWARE'] names {min(repeated)!r} twice; once is enough")
    return tuple(value)


def _queue(key: str, name: object) -> str:
    try:
        return check_queue_name(name)
    except InvalidName as error:
        raise ConfigurationError(f"PGBROKER[{key!r}]: {error}") from None


def _check_aliases(chosen: Settings, databases: Iterable[str]) -> None:
    for key, alias in [("DATABASE", chosen.database), ("LISTEN_DATABASE", chosen.listen_database)]:
        if alias is not None and alias not in databases:
            raise ConfigurationError(
                f"PGBROKER[{key!r}] is {alias!r}, which is no alias in DATABASES. {suggest(alias, databases)}".rstrip()
            )
    if chosen.transaction_pooler and chosen.listen_database == chosen.database:
        raise ConfigurationError(
            f"PGBROKER['LISTEN_DATABASE'] is {chosen.listen_database!r}, the alias that 'TRANSACTION_POOLER' says is "
            "behind a pooler, where nobody can LISTEN; name an alias that goes to the server itself, or leave it out"
        )


def _check_together(chosen: Settings, databases: Iterable[str]) -> None:
    _check_aliases(chosen, databases)
    if chosen.partition_period not in PARTITION_PERIODS:
        raise _bad("PARTITION_PERIOD", chosen.partition_period, f"must be one of {', '.join(PARTITION_PERIODS)}")
    partitions = (chosen.retention_days or 0) // PARTITION_PERIODS[chosen.partition_period]
    if partitions > MOST_PARTITIONS:
        raise ConfigurationError(
            f"PGBROKER['RETENTION_DAYS'] ({chosen.retention_days}) is {partitions:,} partitions of a "
            f"{chosen.partition_period}, more than {MOST_PARTITIONS}: every look-up visits each of them. Lower it, or "
            "use a longer 'PARTITION_PERIOD'"
        )
    if chosen.heartbeat_seconds * 2 > chosen.lease_seconds:
        raise ConfigurationError(
            f"PGBROKER['HEARTBEAT_SECONDS'] ({chosen.heartbeat_seconds}) is more than half of 'LEASE_SECONDS' "
            f"({chosen.lease_seconds}): one late heartbeat would cost the lease. Use a fifth of it"
        )
    if chosen.poll_min_seconds > chosen.poll_max_seconds:
        raise ConfigurationError(
            f"PGBROKER['POLL_MIN_SECONDS'] ({chosen.poll_min_seconds}) is more than 'POLL_MAX_SECONDS' "
            f"({chosen.poll_max_seconds}); lower the one or raise the other"
        )
    _queue("DEFAULT_QUEUE", chosen.default_queue)
    if chosen.bulk_queue is not None:
        _queue("BULK_QUEUE", chosen.bulk_queue)
    if chosen.queues is not None:
        for key, name in [
            ("DEFAULT_QUEUE", chosen.default_queue),
            *([("BULK_QUEUE", chosen.bulk_queue)] if chosen.bulk_queue else []),
            *(("ROUTES", queue) for queue in chosen.routes.values()),
        ]:
            if name not in chosen.queues:
                raise ConfigurationError(
                    f"PGBROKER[{key!r}] names the queue {name!r}, which PGBROKER['QUEUES'] lacks; add it there"
                )


def describe_settings() -> list[tuple[str, str, str, str]]:
    """Every setting as (key, default, bounds, purpose), for the reference page and its test."""
    rows = []
    for each in fields(Settings):
        meta = each.metadata
        bounds = "" if meta["low"] is None else f"{meta['low']:,} to {meta['high']:,}"
        bounds += ", or `None`" if meta["is_optional"] else ""
        rows.append((each.name.upper(), repr(meta["default"]), bounds, meta["purpose"]))
    return rows


def _forget_settings(*, setting: str, **_: object) -> None:
    if setting in ("PGBROKER", "DATABASES"):
        get_settings.cache_clear()


_READERS = {
    "QUEUES": _read_queues,
    "ROUTES": _read_routes,
    "PRIORITY_LEVELS": _read_levels,
    "MIDDLEWARE": _read_middleware,
}
setting_changed.connect(_forget_settings)
