"""What the doctor reads from the server: statistics, locks, horizons, indexes, plans. For ``operations.doctor``."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from psycopg import sql

from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.statement import statement

#: How many sessions of one kind are shown.
HEAD = 10

#: Parameters of a claim that is only planned, with their types.
_CLAIM_TYPES = {
    "queue_id": "bigint",
    "job_type_ids": "bigint[]",
    "floor": "float8",
    "batch": "bigint",
    "begin": "bigint",
    "lease_seconds": "float8",
    "worker_id": "bigint",
}


class TableFigures(NamedTuple):
    """One table or partition; rows are estimates, sizes in bytes (``table_bytes`` with TOAST), ages as named."""

    name: str
    is_partition: bool
    live: int
    dead: int
    vacuum_at: float
    is_looked_after: bool
    vacuumed_seconds_ago: float | None
    analysed_seconds_ago: float | None
    table_bytes: int
    toast_bytes: int
    index_bytes: int
    transaction_age: int
    multixact_age: int


class HorizonHolder(NamedTuple):
    """Who keeps dead rows from being removed; seconds are ``None`` where the server does not tell them."""

    kind: str
    holder: str
    who: str
    state: str | None
    transaction_age: int
    open_seconds: float | None
    query_seconds: float | None


class LockWait(NamedTuple):
    """A session that waits for a lock, and who holds it up."""

    pid: int
    application: str | None
    kind: str
    mode: str
    relation: str | None
    seconds: float
    blockers: list[str]


class ConnectionFigures(NamedTuple):
    """Connections in use and allowed; ``allowed_here`` is the limit of this database, if it has one."""

    used: int
    used_here: int
    of_broker: int
    allowed: int
    reserved: int
    allowed_here: int | None


class IndexState(NamedTuple):
    """One index, and whether the planner can use it."""

    name: str
    table: str
    is_valid: bool
    is_partition: bool


class ServerFigures(NamedTuple):
    """Settings and ages of the server, and what this role may see."""

    read_at: datetime
    version: str
    is_standby: bool
    fsync: str
    full_page_writes: str
    synchronous_commit: str
    autovacuum: str
    track_counts: str
    notify_queue_usage: float
    transaction_age: int
    multixact_age: int
    forced_transaction_age: int
    forced_multixact_age: int
    role: str
    sees_all: bool


class SlotFigures(NamedTuple):
    """One replication slot and the WAL that it keeps."""

    name: str
    is_active: bool
    wal_status: str | None
    kept_bytes: int


class PlanNode(NamedTuple):
    """A node of a plan that reads a table."""

    kind: str
    table: str
    index_name: str | None


def inspect_tables(gateway: Gateway) -> list[TableFigures]:
    """Every table and partition of the broker, by name."""
    return [TableFigures(*row) for row in gateway.fetch("inspect_tables")]


def inspect_horizon(gateway: Gateway) -> list[HorizonHolder]:
    """Who holds the horizon of this database, the oldest first."""
    return [HorizonHolder(*row) for row in gateway.fetch("inspect_horizon", {"head": HEAD})]


def inspect_lock_waits(gateway: Gateway) -> list[LockWait]:
    """Who waits for a lock around the broker's tables, the longest first."""
    return [LockWait(*row) for row in gateway.fetch("inspect_lock_waits", {"head": HEAD})]


def inspect_connections(gateway: Gateway) -> ConnectionFigures:
    """How many connections there are and may be."""
    return ConnectionFigures(*gateway.fetch_one("inspect_connections", {}))


def inspect_indexes(gateway: Gateway) -> list[IndexState]:
    """Every index of the broker's tables and their partitions."""
    return [IndexState(*row) for row in gateway.fetch("inspect_indexes")]


def inspect_server(gateway: Gateway) -> ServerFigures:
    """Settings and ages of the server."""
    return ServerFigures(*gateway.fetch_one("inspect_server"))


def inspect_slots(gateway: Gateway) -> list[SlotFigures]:
    """The replication slots of the whole server, the dearest first."""
    return [SlotFigures(*row) for row in gateway.fetch("inspect_slots")]


def find_busiest_queue(gateway: Gateway) -> tuple[int, str] | None:
    """Id and name of the queue with the most pending jobs; None when there is no queue."""
    rows = gateway.fetch("find_busiest_queue")
    return (int(rows[0][0]), str(rows[0][1])) if rows else None


def plan_claim(gateway: Gateway, queue_id: int, cache_mode: str) -> list[PlanNode]:
    """The nodes that read tables in the plan of a claim; nothing is claimed.

    Args:
        gateway: a connection of the broker's own, with the planner settings that workers have.
        queue_id: the queue to plan for.
        cache_mode: ``force_custom_plan`` or ``force_generic_plan``; workers come to the latter after a few turns.

    Raises:
        psycopg.Error: as the server answered; the role needs the rights of a worker.
    """
    values = {"queue_id": queue_id, "job_type_ids": "{0}", "floor": "-Infinity", "batch": 100, "begin": 100,
              "lease_seconds": 60, "worker_id": 0}  # fmt: skip
    numbered = {name: f"${number}" for number, name in enumerate(_CLAIM_TYPES, 1)}
    text = statement("claim_jobs").text % numbered
    connection = gateway.connection
    with gateway.transaction():
        connection.execute("select set_config('plan_cache_mode', %s, true)", [cache_mode], prepare=False)
        prepared = sql.SQL("prepare pgbroker_doctor ({}) as {}").format(
            sql.SQL(", ").join(map(sql.SQL, _CLAIM_TYPES.values())),
            sql.SQL(text),
        )
        connection.execute(prepared, prepare=False)
        arguments = sql.SQL(", ").join(sql.Literal(str(values[name])) for name in _CLAIM_TYPES)
        explain = sql.SQL("explain (format json) execute pgbroker_doctor ({})").format(arguments)
        try:
            with gateway.transaction():
                row = connection.execute(explain, prepare=False).fetchone()
        finally:
            # what is prepared outlives the transaction, and behind a pooler another doctor would meet it
            connection.execute("deallocate pgbroker_doctor", prepare=False)
    return [] if row is None else list(_readers(row[0][0]["Plan"]))


def _readers(node: Mapping[str, Any]) -> Iterator[PlanNode]:
    if "Relation Name" in node or "Index Name" in node:
        yield PlanNode(node["Node Type"], node.get("Relation Name", ""), node.get("Index Name"))
    for child in node.get("Plans", ()):
        yield from _readers(child)
