"""What the planner does with a statement, in the states of a table that have led planners astray."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from psycopg import sql

from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.statement import statement
from tests.maintenance.rows import Rows

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
