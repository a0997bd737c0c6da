"""What no worker can beat: its statements in a bare loop, and its handlers in a plain pool of threads."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter

from django.db import connections

from django_pgbroker.bench.errors import BenchError
from django_pgbroker.bench.handlers import ARGUMENTS, Handler
from django_pgbroker.bench.scratch import JOB_TYPE, QUEUE, seed
from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.claim import NO_FLOOR
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.identifiers import find_job_type_ids, find_queue_ids
from django_pgbroker.store.statement import statement

_BATCH = 200


def drain_by_statements(gateway: Gateway, jobs: int) -> float:
    """Seed ``jobs`` no-op jobs, claim and acknowledge 200 at a time over one connection, and return jobs per second.

    Raises:
        BenchError: the database is not empty of other work.
    """
    seed(gateway, jobs)
    claim = {
        "queue_id": find_queue_ids(gateway, [QUEUE])[QUEUE],
        "job_type_ids": array_of_integers(find_job_type_ids(gateway, [JOB_TYPE]).values()),
        "floor": NO_FLOOR,
        "batch": _BATCH,
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
            raise BenchError("the floor's acknowledge was refused; something else works in its database")
    return jobs / seconds_of_drain(gateway, jobs)


def run_in_plain_threads(alias: str, handler: Handler, jobs: int, threads: int) -> float:
    """Call a handler ``jobs`` times from a pool of threads that share them evenly, and return calls per second.

    Each thread keeps its connection, as a slot of a worker does. The connections are opened before the clock starts.

    Args:
        alias: the scratch database, with the rows of the handler.
        handler: to call.
        jobs: calls in all.
        threads: as many as a worker has slots.
    """
    shares = [jobs // threads + (number < jobs % threads) for number in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        spans = list(pool.map(partial(_call_often, alias, handler), shares))
    return jobs / (max(end for _, end in spans) - min(begin for begin, _ in spans))


def seconds_of_drain(gateway: Gateway, jobs: int) -> float:
    """From the first claim to the last acknowledge, by the history that was written.

    Raises:
        BenchError: not all jobs are in it.
    """
    query = """
        select extract(epoch from max(finished_at) - min(leased_at))::float8, count(*)
        from pgbroker.execution where outcome = 1
    """
    [(seconds, completed)] = gateway.connection.execute(query, prepare=False).fetchall()
    if completed != jobs:
        raise BenchError(f"of {jobs} jobs {completed} are completed; the figure would be worth nothing")
    return float(seconds)


def floor_statements() -> dict[str, str]:
    """The SQL of ``drain_by_statements``, by the names of the statements."""
    return {name: statement(name).text for name in ("claim_jobs", "acknowledge_jobs")}


def _call_often(alias: str, handler: Handler, times: int) -> tuple[float, float]:
    connections[alias].ensure_connection()
    try:
        began = perf_counter()
        for _ in range(times):
            handler(ARGUMENTS["recipient"], ARGUMENTS["note"])
        return began, perf_counter()
    finally:
        connections[alias].close()
