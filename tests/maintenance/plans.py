"""What the planner does with a statement, in the states of a table that have led planners astray."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from psycopg import sql

from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.statement import statement
from tests.maintenance.rows import Rows

BATCH = 100

#: The statements, their parameters, and how many rows of ``job`` they may read.
STATEMENTS: dict[str, tuple[dict[str, Any], int]] = {
    "expire_jobs": ({"batch": BATCH}, 4 * BATCH),
    "find_due_queues": ({}, 20),
    "mark_lost_workers": ({"batch": BATCH}, 0),
    "park_unknown_jobs": ({"batch": BATCH, "head": 200, "declared": "{a.declared}"}, 3 * 200 + 4 * BATCH),
    "prune_stats": ({"batch": BATCH}, 0),
    "prune_workers": ({"batch": BATCH}, 0),
    "sample_queues": ({"batch": BATCH, "bound": 300, "head": 50, "max_age_seconds": 0.0}, 3 * (300 + 300 + 50) + 900),
    "wake_known_jobs": ({"batch": BATCH}, 4 * BATCH),
}

_numbers = count()
_PARAMETER = re.compile(r"%\((\w+)\)s")


@dataclass
class Plan:
    """The indexes that were used, the tables that were scanned whole, and the rows read of each table."""

    indexes: set[str] = field(default_factory=set)
    scanned: set[str] = field(default_factory=set)
    rows_read: dict[str, float] = field(default_factory=dict)


def plan_of(gateway: Gateway, name: str, params: Mapping[str, Any], cache_mode: str) -> Plan:
    """Run a statement and take it back, and say what the planner did.

    Args:
        gateway: its session settings count.
        name: of the statement.
        params: all of its parameters.
        cache_mode: ``force_custom_plan`` or ``force_generic_plan``.
    """
    order = list(dict.fromkeys(_PARAMETER.findall(statement(name).text)))
    text = _PARAMETER.sub(lambda found: f"${order.index(found[1]) + 1}", statement(name).text)
    values = sql.SQL(", ").join(sql.Literal(params[key]) for key in order)
    call = sql.SQL("({})").format(values) if order else sql.SQL("")
    plan = Plan()
    connection = gateway.connection
    connection.execute(f"set plan_cache_mode = {cache_mode}")
    prepared = f"inspected_{next(_numbers)}"
    connection.execute(f"prepare {prepared} as {text}", prepare=False)
    with connection.transaction(force_rollback=True):
        explain = sql.SQL("explain (analyze, format json) execute {} {}").format(sql.Identifier(prepared), call)
        for node in _walk(connection.execute(explain, prepare=False).fetchone()[0][0]["Plan"]):
            _note(plan, node)
    return plan


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _walk(child)


def _note(plan: Plan, node: dict[str, Any]) -> None:
    if node.get("Index Name"):
        plan.indexes.add(re.sub(r"_\d+w\d+", "", node["Index Name"]))
    table = node.get("Relation Name")
    if table and node["Node Type"] != "ModifyTable":
        if node["Node Type"] == "Seq Scan":
            plan.scanned.add(table)
        each = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        plan.rows_read[table] = plan.rows_read.get(table, 0) + each * node["Actual Loops"]


TABLES = ("job", "job_payload", "stat_minute", "worker", "queue")


def forget_statistics(rows: Rows) -> None:
    """As if no table had ever been analysed, and none is while the test runs."""
    for table in TABLES:
        rows.run(f"alter table pgbroker.{table} set (autovacuum_enabled = off)")
        rows.run(f"delete from pg_statistic where starelid = 'pgbroker.{table}'::regclass")


def restore_autovacuum(rows: Rows) -> None:
    """The end of ``forget_statistics``."""
    for table in TABLES:
        rows.run(f"alter table pgbroker.{table} reset (autovacuum_enabled)")


def analyse(rows: Rows) -> None:
    """Take statistics of what is there now."""
    for table in TABLES:
        rows.run(f"analyze pgbroker.{table}")


def fill(rows: Rows, size: int) -> None:
    """``size`` jobs of each live state in three queues, a hundredth of them overdue, and counters of a month."""
    queues = [rows.queue(name) for name in ("first", "second", "third")]
    job_type = rows.job_type()
    rows.run(
        """
        with new as (
            insert into pgbroker.job (
                tenant_id, queue_id, job_type_id, state, created_at, available_at, claim_order, expires_at, parked_on,
                parked_reason, lease_token, leased_at, lease_expires_at
            )
            select 1, (%s::bigint[])[1 + n %% 3], %s, state, now(), now() - n * interval '1 s',
                now() - n * interval '1 s',
                case when n %% 100 = 0 then now() - n * interval '1 s' else 'infinity' end,
                case when state = 4 then -1000 end, case when state = 4 then 4 end,
                case when state = 1 then n end, case when state = 1 then now() end, case when state = 1 then now() end
            from generate_series(1, %s) as n cross join unnest('{0,1,2,3,4}'::int[]) as state
            returning id
        )
        insert into pgbroker.job_payload (job_id, arguments) select id, '{}' from new
        """,
        queues,
        job_type,
        size,
    )
    rows.run(
        "insert into pgbroker.stat_minute"
        " select date_trunc('minute', now()) - n * interval '2 minute', 1, 1, 1, 1, 0, 0, 1, 0, 0"
        " from generate_series(1, %s) as n on conflict do nothing",
        size,
    )
    rows.run(
        "insert into pgbroker.worker (name, hostname, process_id, version, queues, job_type_ids, concurrency,"
        " heartbeat_seconds, heartbeat_at, stopped_at)"
        " select 'w', 'h', 1, '1', '{}', array[1000], 1, 12, now() - n * interval '1 minute',"
        " case when n > 100 then now() - n * interval '1 hour' end from generate_series(1, 2000) as n"
    )


def run_all(rows: Rows) -> None:
    """Every job is running."""
    rows.run("update pgbroker.job set state = 1, lease_token = id, lease_expires_at = now() where state <> 1")


def drain(rows: Rows) -> None:
    """Everything is done; the tables keep their pages."""
    for table in ("job", "job_payload", "stat_minute", "worker"):
        rows.run(f"delete from pgbroker.{table}")
        rows.run(f"vacuum (truncate off, analyze) pgbroker.{table}")


def never_analysed(rows: Rows, size: int) -> None:
    fill(rows, size)


def analysed_while_empty(rows: Rows, size: int) -> None:
    analyse(rows)
    fill(rows, size)


def analysed_while_all_ran(rows: Rows, size: int) -> None:
    fill(rows, size // 10)
    run_all(rows)
    analyse(rows)
    fill(rows, size)


def drained_and_filled_again(rows: Rows, size: int) -> None:
    fill(rows, size)
    drain(rows)
    fill(rows, size)


def many(rows: Rows, size: int) -> None:
    fill(rows, 4 * size)
    analyse(rows)


#: Each makes ``size`` jobs of every live state, the last one four times as many.
STATES: list[Callable[[Rows, int], None]] = [
    never_analysed,
    analysed_while_empty,
    analysed_while_all_ran,
    drained_and_filled_again,
    many,
]


def check_statements(gateway: Gateway) -> None:
    """Each statement uses the index of its header and reads few rows, with custom and with generic plans."""
    for name, (params, readable) in STATEMENTS.items():
        for cache_mode in ("force_custom_plan", "force_generic_plan"):
            plan = plan_of(gateway, name, params, cache_mode)
            case = f"{name} {cache_mode}: {plan}"
            wanted = {index.strip() for index in statement(name).header["index"].split(",")}
            assert wanted <= plan.indexes, case
            assert not plan.scanned & {"job", "job_payload", "stat_minute"}, case
            assert plan.rows_read.get("job", 0) <= readable, case
            assert plan.rows_read.get("stat_minute", 0) <= 4 * BATCH, case
