"""How fast jobs are enqueued one by one, beside the same statement sent bare through the same Django cursor."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from django.db import connections, transaction

from django_pgbroker.bench.scratch import ARGUMENTS, JOB_TYPE, scratch_database
from django_pgbroker.operations.enqueue import enqueue


@dataclass(frozen=True)
class EnqueueReport:
    """Rates in jobs per second, medians over interleaved pairs."""

    jobs: int
    jobs_per_second: float
    floor_jobs_per_second: float
    ratio: float
    runs: list[dict[str, float]]


def measure_enqueue(alias: str, jobs: int, runs: int, tell: Callable[[str], None] = lambda _: None) -> EnqueueReport:
    """Enqueue ``jobs`` jobs in one transaction per hundred, and send the recorded statement as often, in turns.

    Args:
        alias: its server is used, in a database of its own.
        jobs: of one run.
        runs: pairs; the medians count.
        tell: given a line after each run.
    """
    pairs: list[dict[str, float]] = []
    with scratch_database(alias):
        enqueue(JOB_TYPE, ARGUMENTS, using=alias)
        text = _record_statement(alias)
        for number in range(1, runs + 1):
            floor = jobs / _send_bare(alias, text, jobs)
            rate = jobs / _enqueue(alias, jobs)
            pairs.append({"jobs_per_second": rate, "floor_jobs_per_second": floor})
            tell(f"run {number}: {rate:,.0f} jobs/s, floor {floor:,.0f}, ratio {rate / floor:.2f}")
    return EnqueueReport(
        jobs=jobs,
        jobs_per_second=round(median(pair["jobs_per_second"] for pair in pairs)),
        floor_jobs_per_second=round(median(pair["floor_jobs_per_second"] for pair in pairs)),
        ratio=round(median(pair["jobs_per_second"] / pair["floor_jobs_per_second"] for pair in pairs), 3),
        runs=[{key: round(value, 1) for key, value in pair.items()} for pair in pairs],
    )


def _record_statement(alias: str) -> str:
    """The text of one enqueue as it went to the server, its values in it."""
    seen: list[str] = []

    def note(execute, sql, params, many, context):  # type: ignore[no-untyped-def]
        seen.append(context["cursor"].mogrify(sql, params))
        return execute(sql, params, many, context)

    with transaction.atomic(alias), connections[alias].execute_wrapper(note):
        enqueue(JOB_TYPE, ARGUMENTS, using=alias)
    return max(seen, key=len)


def _send_bare(alias: str, text: str, jobs: int) -> float:
    began = perf_counter()
    for _ in range(jobs // 100):
        with transaction.atomic(alias), connections[alias].cursor() as cursor:
            for _ in range(100):
                cursor.execute(text)
                cursor.nextset()
                cursor.fetchall()
    return perf_counter() - began


def _enqueue(alias: str, jobs: int) -> float:
    began = perf_counter()
    for _ in range(jobs // 100):
        with transaction.atomic(alias):
            for _ in range(100):
                enqueue(JOB_TYPE, ARGUMENTS, using=alias)
    return perf_counter() - began
