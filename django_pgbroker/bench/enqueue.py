"""How fast jobs are enqueued one by one, beside the same statement sent bare through the same Django cursor."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from django.db import connections, transaction

from django_pgbroker.bench.handlers import ARGUMENTS
from django_pgbroker.bench.report import Report, conditions, middle, rounded
from django_pgbroker.bench.scratch import JOB_TYPE, scratch_database
from django_pgbroker.operations.enqueue import enqueue


@dataclass(frozen=True, kw_only=True)
class EnqueueReport(Report):
    """Rates in jobs per second, medians over interleaved pairs."""

    jobs: int
    jobs_per_second: float
    floor_jobs_per_second: float
    ratio: float
    runs: list[dict[str, float]]

    def summary(self) -> str:
        """The figures in one line for people."""
        return (
            f"{self.jobs_per_second:,.0f} jobs/s, floor {self.floor_jobs_per_second:,.0f}, ratio {self.ratio:.2f} "
            f"(median of {len(self.runs)} interleaved pairs of {self.jobs:,} jobs)"
        )


def measure_enqueue(alias: str, *, jobs: int, runs: int, tell: Callable[[str], None] = lambda _: None) -> EnqueueReport:
    """Enqueue ``jobs`` jobs in one transaction per hundred, and send the recorded statement as often.

    They take turns after each transaction: what else the machine does meets both.

    Args:
        alias: its server is used, in a database of its own.
        jobs: of one run.
        runs: pairs; the medians count.
        tell: given a line after each run.
    """
    pairs: list[dict[str, float]] = []
    with scratch_database(alias) as gateway:
        enqueue(JOB_TYPE, ARGUMENTS, using=alias)
        text = _record_statement(alias)
        for number in range(1, runs + 1):
            bare_seconds, own_seconds = _take_turns(alias, text, jobs)
            floor, rate = jobs / bare_seconds, jobs / own_seconds
            pairs.append({"jobs_per_second": rate, "floor_jobs_per_second": floor, "ratio": rate / floor})
            tell(f"run {number}: {rate:,.0f} jobs/s, floor {floor:,.0f}, ratio {rate / floor:.2f}")
        about = conditions(gateway)
    return EnqueueReport(
        **about,
        jobs=jobs,
        jobs_per_second=round(middle(pairs, "jobs_per_second")),
        floor_jobs_per_second=round(middle(pairs, "floor_jobs_per_second")),
        ratio=round(middle(pairs, "ratio"), 3),
        runs=[rounded(pair) for pair in pairs],
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


def _take_turns(alias: str, text: str, jobs: int) -> tuple[float, float]:
    """The seconds of the bare statement and of enqueue, for so many jobs each."""
    bare_seconds = own_seconds = 0.0
    for count in _hundreds(jobs):
        began = perf_counter()
        _send_bare(alias, text, count)
        ended = perf_counter()
        bare_seconds += ended - began
        _enqueue(alias, count)
        own_seconds += perf_counter() - ended
    return bare_seconds, own_seconds


def _send_bare(alias: str, text: str, count: int) -> None:
    with transaction.atomic(alias), connections[alias].cursor() as cursor:
        for _ in range(count):
            cursor.execute(text)
            cursor.nextset()
            cursor.fetchall()


def _enqueue(alias: str, count: int) -> None:
    with transaction.atomic(alias):
        for _ in range(count):
            enqueue(JOB_TYPE, ARGUMENTS, using=alias)


def _hundreds(jobs: int) -> list[int]:
    """The sizes of the transactions; the last one takes what is left."""
    return [min(100, jobs - done) for done in range(0, jobs, 100)]
