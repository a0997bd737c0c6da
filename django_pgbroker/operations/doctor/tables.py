"""Examine what the tables weigh: dead rows, vacuums, sizes, ages. Listed in ``examination``."""

from django_pgbroker.domain.durations import describe_age
from django_pgbroker.domain.sizes import describe_bytes
from django_pgbroker.operations.doctor.finding import SEVERITY, Finding, Level, Subject, judge
from django_pgbroker.store.doctor import ServerFigures, TableFigures, inspect_server, inspect_tables

#: Rows of these change with every job.
HOT_TABLES = ("job", "job_payload", "queue", "stat_minute", "worker")

#: Fewer dead rows than this trouble nobody, whatever the table.
_DEAD_WARNING = 20_000
_DEAD_ALARM = 1_000_000

#: A live table that once was large and is nearly empty now; a row with its indexes takes about 400 bytes.
_SWOLLEN_BYTES = 256 * 1024 * 1024
_SWOLLEN_BYTES_A_ROW = 4096


def examine_dead_rows(subject: Subject) -> Finding:
    """Whether autovacuum keeps up with the hot tables."""
    hot = [table for table in inspect_tables(subject.gateway) if table.name in HOT_TABLES]
    figures = {
        table.name: {
            "live": table.live,
            "dead": table.dead,
            "autovacuum_from": round(table.vacuum_at),
            "vacuumed_seconds_ago": table.vacuumed_seconds_ago,
            "analysed_seconds_ago": table.analysed_seconds_ago,
        }
        for table in hot
    }
    neglected = [table.name for table in hot if not table.is_looked_after]
    if neglected:
        return Finding(
            Level.ALARM,
            f"Autovacuum is switched off for {', '.join(neglected)}.",
            f"ALTER TABLE pgbroker.{neglected[0]} RESET (autovacuum_enabled);",
            figures,
        )
    worst = max(hot, key=lambda table: (SEVERITY.index(_judge_dead(table)), table.dead))
    level = _judge_dead(worst)
    return Finding(
        level,
        f"{worst.name} has the most dead rows: {worst.dead:,} beside {worst.live:,} live ones, "
        f"vacuumed {_ago(worst.vacuumed_seconds_ago)}.",
        ""
        if level is Level.OK
        else f"See `horizon` first: dead rows that an old transaction may still see cannot go. Else run "
        f"VACUUM (ANALYZE) pgbroker.{worst.name}; if it comes back, raise autovacuum_max_workers or lower "
        f"autovacuum_naptime.",
        figures,
    )


def examine_sizes(subject: Subject) -> Finding:
    """What the tables take on the disk, and whether the live table is mostly empty space."""
    tables = inspect_tables(subject.gateway)
    groups: dict[str, dict[str, int]] = {}
    for table in tables:
        group = groups.setdefault(_group(table), dict.fromkeys(("table_bytes", "toast_bytes", "index_bytes"), 0))
        group["table_bytes"] += table.table_bytes
        group["toast_bytes"] += table.toast_bytes
        group["index_bytes"] += table.index_bytes
    sizes = {name: group["table_bytes"] + group["index_bytes"] for name, group in groups.items()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    summary = f"{describe_bytes(sum(sizes.values()))} in all; " + ", ".join(
        f"{name} {describe_bytes(sizes[name])}" for name in largest
    )
    swollen = next((table for table in tables if table.name == "job" and _is_swollen(table)), None)
    if swollen is None:
        return Finding(Level.OK, f"{summary}.", figures=groups)
    return Finding(
        Level.WARNING,
        f"{summary}. job takes {describe_bytes(sizes['job'])} for {swollen.live:,} rows: mostly empty space.",
        "Once a backlog or an old transaction has gone: REINDEX TABLE CONCURRENTLY pgbroker.job; it locks out nobody. "
        "The table's own space is used again by new jobs.",
        groups,
    )


def examine_wraparound(subject: Subject) -> Finding:
    """How far the database is from the point where PostgreSQL takes no more writes (two thousand million)."""
    oldest = max(inspect_tables(subject.gateway), key=lambda table: table.transaction_age)
    return judge_wraparound(inspect_server(subject.gateway), oldest)


def judge_wraparound(server: ServerFigures, oldest: TableFigures) -> Finding:
    """The finding for these figures; a forced vacuum that has not come through by half as much again is told."""
    level = max(
        judge(server.transaction_age, server.forced_transaction_age * 1.5, 1_000_000_000),
        judge(server.multixact_age, server.forced_multixact_age * 1.5, 1_000_000_000),
        key=SEVERITY.index,
    )
    return Finding(
        level,
        f"{server.transaction_age:,} transactions old (a vacuum is forced at {server.forced_transaction_age:,}); "
        f"of ours, {oldest.name} with {oldest.transaction_age:,}.",
        ""
        if level is Level.OK
        else "The forced vacuum does not come through. See `horizon` for who holds it up, end it, then run "
        "VACUUM (FREEZE) on the oldest tables: SELECT oid::regclass, age(relfrozenxid) FROM pg_class "
        "WHERE relkind IN ('r', 't', 'm') ORDER BY 2 DESC LIMIT 10;",
        {
            "transaction_age": server.transaction_age,
            "multixact_age": server.multixact_age,
            "forced_transaction_age": server.forced_transaction_age,
            "forced_multixact_age": server.forced_multixact_age,
            "oldest_table": oldest.name,
        },
    )


def _judge_dead(table: TableFigures) -> Level:
    return judge(table.dead, max(3 * table.vacuum_at, _DEAD_WARNING), max(20 * table.vacuum_at, _DEAD_ALARM))


def _is_swollen(table: TableFigures) -> bool:
    size = table.table_bytes + table.index_bytes
    return size > _SWOLLEN_BYTES and size > _SWOLLEN_BYTES_A_ROW * max(table.live, 1)


def _group(table: TableFigures) -> str:
    """Partitions count as one table, but for the dead letters."""
    if table.is_partition and table.name != "archived_job_dead":
        return "archived_job" if table.name.startswith("archived_job") else "execution"
    return table.name


def _ago(seconds: float | None) -> str:
    return "never yet" if seconds is None else describe_age(seconds)
