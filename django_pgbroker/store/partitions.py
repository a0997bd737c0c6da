"""Keep the partitions by time of the archive and of the executions. Called after migrate, by a duty and by the doctor.

Their names and bounds depend on the date, so this is the one place whose DDL is composed and not read from a file.
"""

from datetime import UTC, datetime
from typing import LiteralString, NamedTuple

from psycopg import sql
from psycopg.errors import LockNotAvailable
from psycopg.pq import TransactionStatus

from django_pgbroker.store.gateway import Gateway, Params

#: A waiting ATTACH blocks every acknowledge behind it: give up soon, and try again.
_LOCK_TIMEOUT: LiteralString = "set local lock_timeout = '500ms'"
_TRIES = 4

#: Moving this many rows out of a default partition takes about two seconds, in which acknowledges wait.
MOVE_LIMIT = 100_000

#: One process at a time and database builds partitions or drops them.
PARTITION_LOCK = int.from_bytes(b"pgb:part")


class Partition(NamedTuple):
    """One partition: the table it belongs to, its name, and its bounds in UTC (``None``: open or out of range)."""

    parent: str
    name: str
    lower: datetime | None
    upper: datetime | None
    is_default: bool


class _Gap(NamedTuple):
    parent: str
    name: str
    lower: str
    upper: str
    has_begun: bool


def list_partitions(gateway: Gateway) -> list[Partition]:
    """The partitions of ``archived_job_finished`` and ``execution``, oldest first after each parent's default one."""
    return [
        Partition(parent, name, _in_utc(lower), _in_utc(upper), is_default)
        for parent, name, lower, upper, is_default in gateway.fetch("list_partitions")
    ]


def ensure_partitions(gateway: Gateway, period: str, days_ahead: int = 7, move_limit: int = MOVE_LIMIT) -> list[str]:
    """Create the partitions that are missing from the current period up to ``days_ahead`` days from now.

    Rows that landed in a default partition are moved into the new one in the same transaction; past periods with such
    rows get a partition too, the latest few in one call. Where the period was changed, only what no partition covers
    yet is added. Safe in any number of processes.

    Args:
        gateway: the broker's connection; its role must own the tables.
        period: ``day``, ``week`` (from Monday) or ``month``, all in UTC.
        days_ahead: how many days beyond now must be covered.
        move_limit: a period with more rows than this in a default partition is left there, for the move would hold up
            acknowledges for long; the next period has a partition from its beginning.

    Returns:
        The names of the partitions that this call created.

    Raises:
        psycopg.errors.LockNotAvailable: a transaction reads the history for long; call again later. Meanwhile the
            default partition takes the rows.
    """
    created = []
    wanted = {"period": period, "days_ahead": days_ahead, "move_limit": move_limit}
    for gap in _find_gaps(gateway, wanted):
        if name := _fill_patiently(gateway, gap, wanted):
            created.append(name)
    return created


def _in_utc(instant: datetime | None) -> datetime | None:
    return instant and instant.astimezone(UTC)


def _find_gaps(gateway: Gateway, wanted: Params) -> list[_Gap]:
    return [_Gap(*row) for row in gateway.fetch("find_partition_gaps", wanted)]


def _fill_patiently(gateway: Gateway, gap: _Gap, wanted: Params) -> str | None:
    for _ in range(_TRIES - 1):
        try:
            return _fill(gateway, gap, wanted)
        except LockNotAvailable:
            continue
    return _fill(gateway, gap, wanted)


def _fill(gateway: Gateway, gap: _Gap, wanted: Params) -> str | None:
    """Build the partition apart, move its rows into it and attach it; ``None`` if somebody else has done it."""
    is_outermost = gateway.connection.info.transaction_status == TransactionStatus.IDLE
    with gateway.transaction():
        if is_outermost:
            # the look after the wait for the lock must see what others have built meanwhile
            gateway.connection.execute("set transaction isolation level read committed")
        gateway.connection.execute("select pg_advisory_xact_lock(%s)", [PARTITION_LOCK])
        gateway.connection.execute(_LOCK_TIMEOUT)
        found = [each for each in _find_gaps(gateway, wanted) if each[:4] == gap[:4]]
        if not found:
            return None
        name = _free_name(gateway, gap.name)
        _build_and_attach(gateway, found[0], name)
    return name


def _free_name(gateway: Gateway, wanted: str) -> str:
    """The wanted name, or a numbered one where a table that is no partition (a detached one, say) has taken it."""
    name, number = wanted, 1
    while gateway.connection.execute("select to_regclass(%s)", [f'pgbroker."{name}"']).fetchone() != (None,):
        number += 1
        name = f"{wanted}_{number}"
    return name


def _build_and_attach(gateway: Gateway, gap: _Gap, name: str) -> None:
    names = {
        "parent": sql.Identifier("pgbroker", gap.parent),
        "default": sql.Identifier("pgbroker", f"{gap.parent}_default"),
        "partition": sql.Identifier("pgbroker", name),
        "lower": sql.Literal(gap.lower),
        "upper": sql.Literal(gap.upper),
    }
    steps = [
        "create table {partition} (like {parent} including all)",
        # default privileges of the database may have opened it, and policies on the parent do not guard it
        "revoke all on table {partition} from public",
        # locked before it is read, in the mode that ATTACH needs: no row may arrive in between, no lock may grow
        "lock table {default} in access exclusive mode",
        "with moved as (delete from {default} where finished_at >= {lower} and finished_at < {upper} returning *)"
        " insert into {partition} select * from moved",
        "alter table {parent} attach partition {partition} for values from ({lower}) to ({upper})",
    ]
    if gap.has_begun:
        # a writer that had chosen the default partition would fail after the ATTACH: let it wait before it chooses
        steps.insert(2, "lock table only {parent} in share row exclusive mode")
    for step in steps:
        gateway.connection.execute(sql.SQL(step).format(**names))
