"""Ask PostgreSQL how it runs a statement: EXPLAIN of the prepared text on a connection of the broker's own."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg import sql

from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.statement import statement

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")

#: Tables that hold as many rows as there are jobs: no statement of the hot path reads one from end to end.
LARGE = {"job", "job_payload", "archived_job", "execution", "job_dependency"}


@dataclass
class Plan:
    """What was seen of one execution.

    Args:
        indexes: that were used, those of partitions under the name of their table's.
        read_whole: large tables that were scanned from end to end.
        sorted_rows: the most rows that a sort had before it.
        rows: rows that scans of a table touched, filtered ones included.
    """

    text: str
    indexes: set[str] = field(default_factory=set)
    read_whole: set[str] = field(default_factory=set)
    sorted_rows: float = 0
    rows: dict[str, float] = field(default_factory=dict)


def prepare(gateway: Gateway, name: str) -> None:
    """Prepare the statement on the server under its own name, its parameters typed by the text."""
    order = _order(name)
    text = _PLACEHOLDER.sub(lambda found: f"${order.index(found[1]) + 1}", statement(name).text)
    gateway.connection.execute(f"prepare {name} as {text}", prepare=False)


def explain_prepared(gateway: Gateway, name: str, params: Mapping[str, Any]) -> Plan:
    """Run the prepared statement once in a transaction that is rolled back, and say what the planner did."""
    with gateway.connection.transaction(force_rollback=True):
        return _explain(gateway, name, params)


def explain(gateway: Gateway, name: str, params: Mapping[str, Any]) -> Plan:
    """Plan the statement now, run it in a transaction that is rolled back, and say what the planner did.

    Args:
        gateway: its session settings count; ``plan_cache_mode`` says whether the plan is generic.
        name: of the statement.
        params: all of them.
    """
    with gateway.connection.transaction(force_rollback=True):
        prepare(gateway, name)
        plan = _explain(gateway, name, params)
        gateway.connection.execute(f"deallocate {name}", prepare=False)
        return plan


def _explain(gateway: Gateway, name: str, params: Mapping[str, Any]) -> Plan:
    values = sql.SQL(", ").join(sql.Literal(params[key]) for key in _order(name))
    asked = sql.SQL("explain (analyze, timing off, format json) execute {} ({})").format(sql.Identifier(name), values)
    [[found]] = gateway.connection.execute(asked, prepare=False).fetchall()
    plan = Plan(text=str(found))
    for node in _walk(found[0]["Plan"]):
        _note(plan, node)
    return plan


def _order(name: str) -> list[str]:
    return list(dict.fromkeys(_PLACEHOLDER.findall(statement(name).text)))


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", []):
        yield from _walk(child)


def _note(plan: Plan, node: dict[str, Any]) -> None:
    kind, loops = node["Node Type"], node["Actual Loops"]
    if (index := node.get("Index Name")) and loops:
        plan.indexes.add(_of_parent(index))
    if kind == "Sort" and loops:
        plan.sorted_rows = max(plan.sorted_rows, sum(child["Actual Rows"] for child in node["Plans"]))
    if table := node.get("Relation Name"):
        table = _of_parent(table)
        if kind == "Seq Scan" and loops and table in LARGE:
            plan.read_whole.add(table)
        if kind.endswith("Scan"):
            removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
            plan.rows[table] = plan.rows.get(table, 0) + (node["Actual Rows"] + removed) * loops


def _of_parent(name: str) -> str:
    """``execution_2026w49_pkey`` and ``execution_default_pkey`` as ``execution_pkey``."""
    if not name.startswith(("execution_", "archived_job_")):
        return name
    table = "execution" if name.startswith("execution_") else "archived_job"
    return f"{table}_pkey" if name.endswith("_pkey") else table
