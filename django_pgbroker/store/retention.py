"""Let old history go: whole partitions, and old rows of the default ones. Called by the retention duty."""

from datetime import UTC, datetime
from typing import LiteralString, NamedTuple

from psycopg import sql

from django_pgbroker.store.gateway import CallerGateway, Gateway
from django_pgbroker.store.partitions import PARTITION_LOCK

#: While the DETACH waits, every acknowledge waits behind it: this is the longest that one is held up.
_LOCK_TIMEOUT: LiteralString = "set local lock_timeout = '200ms'"

#: Counting in a default partition stops here: it is meant to be empty.
DEFAULT_ROWS_BOUND = 100_001


class OldPartition(NamedTuple):
    """A partition whose whole history is past the limit; ``rows`` is an estimate of the server's."""

    parent: str
    name: str
    lower: datetime | None
    upper: datetime | None
    rows: int
    bytes: int


class DefaultRows(NamedTuple):
    """How many rows are in the default partition of ``parent``; counting stops at ``DEFAULT_ROWS_BOUND``."""

    parent: str
    rows: int
    old: int


def find_old_partitions(gateway: Gateway | CallerGateway, days: int) -> list[OldPartition]:
    """The partitions of the archive and of the executions that ended ``days`` days ago or earlier, oldest first.

    Dead letters are in a partition that is not by time, so none of them is ever among these.
    """
    return [
        OldPartition(parent, name, _in_utc(lower), _in_utc(upper), rows, size)
        for parent, name, lower, upper, rows, size in gateway.fetch("find_old_partitions", {"days": days})
    ]


def count_default_rows(gateway: Gateway | CallerGateway, days: int | None) -> list[DefaultRows]:
    """The rows in each default partition, and those older than ``days`` days; ``None``: none is too old."""
    params = {"days": days, "bound": DEFAULT_ROWS_BOUND}
    return [DefaultRows(*row) for row in gateway.fetch("count_default_rows", params)]


def prune_default_rows(gateway: Gateway, days: int, batch: int) -> int:
    """Delete up to ``batch`` rows a table that are older than ``days`` days from the default partitions.

    Returns:
        How many rows went from the table that lost more; ``batch`` means that there may be more.

    Raises:
        psycopg.Error: as the server answered.
    """
    params = {"days": days, "batch": batch}
    return max(gateway.execute("prune_default_archive", params), gateway.execute("prune_default_executions", params))


def drop_partition(gateway: Gateway, partition: OldPartition, days: int) -> bool:
    """Detach one old partition and drop it, in one transaction; False when somebody else has done it meanwhile.

    Acknowledges wait for it 200 ms at most, and for the few milliseconds of the work.

    Args:
        gateway: the broker's connection; its role must own the tables.
        partition: as ``find_old_partitions`` gave it.
        days: the limit, looked at once more under the lock.

    Raises:
        psycopg.errors.LockNotAvailable: somebody reads or vacuums the history; nothing has changed, call again later.
        psycopg.Error: the server refused (a view that depends on the partition, no right); nothing has changed.
    """
    with gateway.transaction():
        gateway.connection.execute(_LOCK_TIMEOUT)
        gateway.connection.execute("select pg_advisory_xact_lock(%s)", [PARTITION_LOCK])
        if partition[:2] not in {each[:2] for each in find_old_partitions(gateway, days)}:
            return False
        _detach_and_drop(gateway, partition)
    return True


def _detach_and_drop(gateway: Gateway, partition: OldPartition) -> None:
    names = {
        "parent": sql.Identifier("pgbroker", partition.parent),
        "default": sql.Identifier("pgbroker", f"{partition.parent}_default"),
        "partition": sql.Identifier("pgbroker", partition.name),
    }
    steps = [
        # a vacuum at work would refuse the DETACH: found out before anybody has to wait
        "lock table only {default}, only {partition} in share update exclusive mode nowait",
        # the one lock that is waited for; whoever reads or writes history by way of the parent is out of it by then
        "lock table only {parent} in access exclusive mode",
        # what is left reads a partition by its own name: no second wait while acknowledges stand behind the parent
        "lock table only {default}, only {partition} in access exclusive mode nowait",
        "alter table {parent} detach partition {partition}",
        "drop table {partition}",
    ]
    for step in steps:
        gateway.connection.execute(sql.SQL(step).format(**names))


def _in_utc(instant: datetime | None) -> datetime | None:
    return instant and instant.astimezone(UTC)
