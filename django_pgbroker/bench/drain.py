"""How fast one worker process empties a queue, beside its own statements in a bare loop."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from django_pgbroker.bench.scratch import ARGUMENTS, JOB_TYPE, QUEUE, open_bench_gateway, scratch_database, seed
from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.claim import NO_FLOOR
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.identifiers import find_job_type_ids, find_queue_ids
from django_pgbroker.store.statement import statement
from django_pgbroker.worker.options import QueueShare, WorkerOptions
from django_pgbroker.worker.worker import Worker

FLOOR_BATCH = 200


@dataclass(frozen=True)
class DrainReport:
    """Rates in jobs per second, medians over interleaved pairs, and what lies behind them."""

    jobs: int
    concurrency: int
    jobs_per_second: float
    floor_jobs_per_second: float
    ratio: float
    runs: list[dict[str, float]]
    wal_bytes_per_job: float


def measure_drain(
    alias: str, jobs: int, concurrency: int, runs: int, tell: Callable[[str], None] = lambda _: None
) -> DrainReport:
    """Drain ``jobs`` no-op jobs by a worker and by a bare loop, in turns.

    The floor claims and acknowledges 200 jobs at a time over one connection, with the same history kept and nothing in
    between: no threads, no handlers, no leases to renew. Both pay for the same rows.

    Args:
        alias: its server is used, in a database of its own.
        jobs: of one run.
        concurrency: slots of the worker.
        runs: pairs; the medians count.
        tell: given a line after each run.
    """
    pairs: list[dict[str, float]] = []
    with scratch_database(alias):
        gateway = open_bench_gateway(alias)
        try:
            for number in range(1, runs + 1):
                seed(gateway, jobs, json.dumps(ARGUMENTS))
                _drain_by_floor(gateway)
                floor = jobs / _seconds_of_drain(gateway, jobs)
                seed(gateway, jobs, json.dumps(ARGUMENTS))
                before = _wal_position(gateway)
                _drain_by_worker(alias, concurrency)
                rate = jobs / _seconds_of_drain(gateway, jobs)
                wal = (_wal_position(gateway) - before) / jobs
                pairs.append({"jobs_per_second": rate, "floor_jobs_per_second": floor, "wal_bytes_per_job": wal})
                tell(f"run {number}: {rate:,.0f} jobs/s, floor {floor:,.0f}, ratio {rate / floor:.2f}")
        finally:
            gateway.connection.close()
    return DrainReport(
        jobs=jobs,
        concurrency=concurrency,
        jobs_per_second=round(median(pair["jobs_per_second"] for pair in pairs)),
        floor_jobs_per_second=round(median(pair["floor_jobs_per_second"] for pair in pairs)),
        ratio=round(median(pair["jobs_per_second"] / pair["floor_jobs_per_second"] for pair in pairs), 3),
        runs=[{key: round(value, 1) for key, value in pair.items()} for pair in pairs],
        wal_bytes_per_job=round(median(pair["wal_bytes_per_job"] for pair in pairs)),
    )


def floor_statements() -> dict[str, str]:
    """The SQL of the floor, by the names of the statements."""
    return {name: statement(name).text for name in ("claim_jobs", "acknowledge_jobs")}


def _drain_by_floor(gateway: Gateway) -> None:
    claim = {
        "queue_id": find_queue_ids(gateway, [QUEUE])[QUEUE],
        "job_type_ids": array_of_integers(find_job_type_ids(gateway, [JOB_TYPE]).values()),
        "floor": NO_FLOOR,
        "batch": FLOOR_BATCH,
        "begin": 0,
        "lease_seconds": 60.0,
        "worker_id": 0,
    }
    while rows := gateway.fetch("claim_jobs", claim):
        rows.sort()
        count = len(rows)
        acknowledge = {
            "ids": "{" + ",".join([str(row[0]) for row in rows]) + "}",
            "tokens": "{" + ",".join([str(row[1]) for row in rows]) + "}",
            "outcomes": "{" + ",".join(["1"] * count) + "}",
            "next_states": "{" + ",".join(["10"] * count) + "}",
            "delays": "{" + ",".join(["0"] * count) + "}",
            "run_microseconds": "{" + ",".join(["1"] * count) + "}",
            **dict.fromkeys(("results", "errors", "reasons"), "{" + ",".join(["NULL"] * count) + "}"),
            "lapsed": False,
        }
        if gateway.fetch("acknowledge_jobs", acknowledge):
            raise RuntimeError("the floor's acknowledge was refused; something else works in its database")


def _drain_by_worker(alias: str, concurrency: int) -> None:
    options = WorkerOptions((QueueShare(QUEUE),), concurrency, database=alias, until_empty=True)
    Worker(options).run()


def _seconds_of_drain(gateway: Gateway, jobs: int) -> float:
    """From the first claim to the last acknowledge, by the history that was written."""
    query = """
        select extract(epoch from max(finished_at) - min(leased_at))::float8, count(*)
        from pgbroker.execution where outcome = 1
    """
    [(seconds, completed)] = gateway.connection.execute(query, prepare=False).fetchall()
    if completed != jobs:
        raise RuntimeError(f"of {jobs} jobs {completed} are completed; this figure is worth nothing")
    return float(seconds)


def _wal_position(gateway: Gateway) -> float:
    query = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8"
    [(position,)] = gateway.connection.execute(query, prepare=False).fetchall()
    return float(position)
