"""How soon an idle worker begins a job after its commit, and how much of that is the way to the claim."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.db import transaction

from django_pgbroker.bench.crew import Member, start_crew
from django_pgbroker.bench.errors import BenchError
from django_pgbroker.bench.handlers import ARGUMENTS
from django_pgbroker.bench.report import Report, conditions, milliseconds
from django_pgbroker.bench.scratch import JOB_TYPE, scratch_database
from django_pgbroker.bench.worker_process import Assignment
from django_pgbroker.operations.enqueue import enqueue
from django_pgbroker.store.gateway import Gateway

#: Of the mean: the default of 70 ms is 20 to 120.
_SHORTEST_GAP = 2 / 7
_LONGEST_GAP = 12 / 7

#: The longest poll is 5 s by default.
_PATIENCE_SECONDS = 60.0

#: The first jobs find a worker whose statements are not prepared yet.
_WARM_UP = 5

_PROGRESS_SECONDS = 5.0

_CLAIMED_AFTER = """
select extract(epoch from execution.leased_at - job.available_at)::float8
from pgbroker.execution join pgbroker.archived_job as job on job.id = execution.job_id
where job.id = any (%s)
"""


@dataclass(frozen=True, kw_only=True)
class LatencyReport(Report):
    """Milliseconds from the commit of an enqueue to the start of its handler.

    ``claim_p50_ms`` and ``claim_p99_ms`` are from the enqueue's statement to the claim's, by the database's clock.
    """

    jobs: int
    listens: bool
    gap_seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    claim_p50_ms: float
    claim_p99_ms: float

    def summary(self) -> str:
        """The figures in one line for people."""
        return (
            f"p50 {self.p50_ms:.2f} ms, p99 {self.p99_ms:.2f}, max {self.max_ms:.2f}; enqueued to claimed p50 "
            f"{self.claim_p50_ms:.2f}, p99 {self.claim_p99_ms:.2f} ({self.jobs:,} jobs, {self.gap_seconds:g} s apart, "
            f"{'with notifications' if self.listens else 'polling alone'})"
        )


def measure_latency(
    alias: str, *, jobs: int, gap_seconds: float, listens: bool, tell: Callable[[str], None] = lambda _: None
) -> LatencyReport:
    """Enqueue one job at a time for one idle worker, and wait each time until its handler has begun.

    The start is told by the handler and the commit by this process, both by the monotonic clock of the machine, which
    all its processes share.

    Args:
        alias: its server is used, in a database of its own.
        jobs: how many are measured, after five that are not.
        gap_seconds: the mean pause between a start and the next enqueue; it varies at random.
        listens: whether the worker hears of new jobs, or polls alone.
        tell: given a line of progress every five seconds.

    Raises:
        BenchError: a job was not begun within a minute.
    """
    with scratch_database(alias) as gateway:
        assignment = Assignment(alias, gateway.connection.info.dbname, "clock", listens=listens)
        with start_crew(gateway, assignment) as [member]:
            for _ in range(_WARM_UP):
                _time_one(alias, member, gap_seconds)
            timed = _time_all(alias, member, jobs, gap_seconds, tell)
        latencies = list(timed.values())
        claimed_after = _read_claims(gateway, list(timed))
        about = conditions(gateway)
    return LatencyReport(
        **about,
        jobs=jobs,
        listens=listens,
        gap_seconds=gap_seconds,
        p50_ms=milliseconds(latencies, 50),
        p99_ms=milliseconds(latencies, 99),
        max_ms=milliseconds(latencies, 100),
        claim_p50_ms=milliseconds(claimed_after, 50),
        claim_p99_ms=milliseconds(claimed_after, 99),
    )


def _time_all(
    alias: str, member: Member, jobs: int, gap_seconds: float, tell: Callable[[str], None]
) -> dict[int, float]:
    timed: dict[int, float] = {}
    told_at = time.monotonic()
    while len(timed) < jobs:
        job_id, seconds = _time_one(alias, member, gap_seconds)
        timed[job_id] = seconds
        if time.monotonic() - told_at > _PROGRESS_SECONDS:
            told_at = time.monotonic()
            tell(f"{len(timed):,} of {jobs:,} jobs, p50 so far {milliseconds(list(timed.values()), 50):.2f} ms")
    return timed


def _time_one(alias: str, member: Member, gap_seconds: float) -> tuple[int, float]:
    """The id of a job, and the seconds from its commit to its start."""
    time.sleep(gap_seconds * random.uniform(_SHORTEST_GAP, _LONGEST_GAP))  # noqa: S311 - no secret
    committed_at: list[int] = []
    with transaction.atomic(alias):
        # before the hook of the enqueue, which wakes the thread that announces
        transaction.on_commit(lambda: committed_at.append(time.monotonic_ns()), using=alias)
        handle = enqueue(JOB_TYPE, ARGUMENTS, using=alias)
    if not member.pipe.poll(_PATIENCE_SECONDS):
        raise BenchError(f"a job was not begun within {_PATIENCE_SECONDS:.0f} s of its commit")
    return handle.id, (member.pipe.recv() - committed_at[0]) / 1e9


def _read_claims(gateway: Gateway, job_ids: list[int]) -> list[float]:
    """The worker has ended: all it ran is acknowledged."""
    waits = [seconds for (seconds,) in gateway.connection.execute(_CLAIMED_AFTER, [job_ids]).fetchall()]
    if len(waits) != len(job_ids):
        raise BenchError(f"of {len(job_ids)} jobs {len(waits)} are in the history; the figures would be worth nothing")
    return waits
