"""Whether full speed can be kept: sizes of the live tables and prices of claims while jobs come and go for long."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from django_pgbroker.bench.crew import Member, count_completed, empty_pipe, start_crew
from django_pgbroker.bench.report import Report, conditions, milliseconds
from django_pgbroker.bench.scratch import JOB_TYPE, QUEUE, add_jobs, open_bench_gateway, scratch_database
from django_pgbroker.bench.table_sizes import read_dead_rows, read_sizes, size_of_job
from django_pgbroker.bench.worker_process import Assignment
from django_pgbroker.store.claim import claim_jobs
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.identifiers import find_job_type_ids, find_queue_ids

#: The backlog is filled up to the higher one when it falls below the lower one, so many jobs at a time.
_FEWEST_JOBS = 20_000
_MOST_JOBS = 60_000
_A_TIME = 10_000

_PROBE_SECONDS = 0.2
_PROGRESS_SECONDS = 10.0

#: Growth counts from here on, in short runs from their first quarter on.
_FIRST_SECONDS = 60.0


class Cost(NamedTuple):
    """What a claim cost: seconds, and when, in seconds since the worker was ready."""

    at: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ChurnReport(Report):
    """A long run at full speed.

    ``p50_ms`` and ``p99_ms`` are of the claims of the worker, on the server, after the first minute. Probes are claims
    of one job that always begin at the head of the index, as those of a worker that has just started.
    ``growth_ratio`` is the size of the job table with its indexes at the end over that after the first minute. The
    figures of the old snapshot are None where there was none; ``snapshot_ratio`` is the p99 beside it over that before.
    """

    seconds: float
    old_snapshot_seconds: float
    jobs: int
    jobs_per_second: float
    jobs_per_claim: float
    p50_ms: float
    p99_ms: float
    probe_p50_ms: float
    probe_p99_ms: float
    growth_ratio: float
    snapshot_before_p99_ms: float | None
    snapshot_p99_ms: float | None
    snapshot_ratio: float | None
    snapshot_probe_p99_ms: float | None
    sizes_after_first_minute: dict[str, int]
    sizes_at_end: dict[str, int]
    samples: list[dict[str, float]]

    def summary(self) -> str:
        """The figures in one line for people."""
        snapshot = ""
        if self.snapshot_ratio is not None:
            snapshot = f" ({self.snapshot_ratio:.2f} times as much beside an old snapshot)"
        return (
            f"{self.jobs_per_second:,.0f} jobs/s, job table and indexes {self.growth_ratio:.2f} times what they were "
            f"after the first minute, claims p50 {self.p50_ms:.2f} ms, p99 {self.p99_ms:.2f}{snapshot} "
            f"({self.jobs:,} jobs in {self.seconds:g} s)"
        )


def measure_churn(
    alias: str, *, seconds: float, old_snapshot_seconds: float = 0, tell: Callable[[str], None] = lambda _: None
) -> ChurnReport:
    """Let one worker process with its duties run no-op jobs as fast as it can, and keep its queue from running empty.

    Args:
        alias: its server is used, in a database of its own.
        seconds: how long.
        old_snapshot_seconds: for so long, in the middle, another session stays in a REPEATABLE READ transaction, and
            nothing that is deleted meanwhile can be cleared away.
        tell: given a line of progress every ten seconds.

    Raises:
        BenchError: the worker ended, or a job failed.
    """
    with scratch_database(alias) as gateway, ExitStack() as stack:
        add_jobs(gateway, _MOST_JOBS)
        assignment = Assignment(alias, gateway.connection.info.dbname, has_duties=True, tells_claims=True)
        [member] = stack.enter_context(start_crew(gateway, assignment))
        churn = _Churn(alias, gateway, member, tell)
        first = min(_FIRST_SECONDS, seconds / 4)
        churn.run_until(first)
        sizes_before, jobs_before = read_sizes(gateway), count_completed(gateway)
        middle = (max((seconds - old_snapshot_seconds) / 2, first), (seconds + old_snapshot_seconds) / 2)
        churn.run_until(middle[0])
        if old_snapshot_seconds:
            with _old_snapshot(alias):
                churn.run_until(middle[1])
        churn.run_until(seconds)
        jobs, sizes, passed = count_completed(gateway), read_sizes(gateway), churn.seconds
        about = conditions(gateway)
    claims = _between(churn.claims, first, seconds)
    before = milliseconds(_between(churn.claims, first, middle[0]), 99) if old_snapshot_seconds else None
    beside = milliseconds(_between(churn.claims, *middle), 99) if old_snapshot_seconds else None
    probe = milliseconds(_between(churn.probes, *middle), 99) if old_snapshot_seconds else None
    return ChurnReport(
        **about,
        seconds=seconds,
        old_snapshot_seconds=old_snapshot_seconds,
        jobs=jobs,
        jobs_per_second=round((jobs - jobs_before) / (passed - first)),
        jobs_per_claim=round(jobs / len(churn.claims), 1),
        p50_ms=milliseconds(claims, 50),
        p99_ms=milliseconds(claims, 99),
        probe_p50_ms=milliseconds(_between(churn.probes, first, seconds), 50),
        probe_p99_ms=milliseconds(_between(churn.probes, first, seconds), 99),
        growth_ratio=round(size_of_job(sizes) / size_of_job(sizes_before), 3),
        snapshot_before_p99_ms=before,
        snapshot_p99_ms=beside,
        snapshot_ratio=round(beside / before, 3) if beside and before else None,
        snapshot_probe_p99_ms=probe,
        sizes_after_first_minute=sizes_before,
        sizes_at_end=sizes,
        samples=churn.samples,
    )


@dataclass
class _Churn:
    """One run: fills the queue, probes it, and collects what the worker tells."""

    alias: str
    gateway: Gateway
    member: Member
    tell: Callable[[str], None]
    claims: list[Cost] = field(default_factory=list)
    probes: list[Cost] = field(default_factory=list)
    samples: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._given = _MOST_JOBS
        self._is_filling = False
        self._sampled_at = 0.0
        self._sampled_jobs = 0
        self._queue_id = find_queue_ids(self.gateway, [QUEUE])[QUEUE]
        self._job_type_ids = list(find_job_type_ids(self.gateway, [JOB_TYPE]).values())

    @property
    def seconds(self) -> float:
        """Since the worker was ready."""
        return time.monotonic() - self._began

    def run_until(self, seconds: float) -> None:
        """Go on until so many seconds since the beginning."""
        while self.seconds < seconds:
            next_at = min(self.seconds + _PROBE_SECONDS, seconds)
            self.member.check()
            self._fill()
            self._probe()
            self.claims += [Cost(self.seconds, told) for told in empty_pipe(self.member.pipe)]
            if self.seconds - self._sampled_at >= _PROGRESS_SECONDS:
                self._sample()
            time.sleep(max(next_at - self.seconds, 0))

    def _fill(self) -> None:
        waiting = self._given - count_completed(self.gateway)
        if waiting < _FEWEST_JOBS:
            self._is_filling = True
        if self._is_filling:
            add_jobs(self.gateway, _A_TIME)
            self._given += _A_TIME
            self._is_filling = waiting + 2 * _A_TIME <= _MOST_JOBS

    def _probe(self) -> None:
        """Claim one job from the head, and give it back."""
        connection = self.gateway.connection
        with connection.transaction(force_rollback=True):
            claimed = claim_jobs(
                self.gateway,
                queue_id=self._queue_id,
                job_type_ids=self._job_type_ids,
                batch=1,
                lease_seconds=60.0,
                worker_id=0,
            )
        if claimed:
            self.probes.append(Cost(self.seconds, claimed[0].claim_seconds))

    def _sample(self) -> None:
        now, jobs, sizes = self.seconds, count_completed(self.gateway), read_sizes(self.gateway)
        claims = _between(self.claims, self._sampled_at, now) or [0.0]
        sample = {
            "seconds": round(now, 1),
            "jobs": jobs,
            "jobs_per_second": round((jobs - self._sampled_jobs) / (now - self._sampled_at)),
            "p50_ms": milliseconds(claims, 50),
            "p99_ms": milliseconds(claims, 99),
            "dead_rows": read_dead_rows(self.gateway),
            **{f"{name}_bytes": size for name, size in sizes.items()},
        }
        self._sampled_at, self._sampled_jobs = now, jobs
        self.samples.append(sample)
        megabytes = ", ".join(f"{name} {size / 1_000_000:.1f}" for name, size in sizes.items() if size > 100_000)
        self.tell(
            f"{now:,.0f} s: {jobs:,} jobs, {sample['jobs_per_second']:,.0f}/s, claims p50 {sample['p50_ms']:.2f} ms, "
            f"p99 {sample['p99_ms']:.2f}, {sample['dead_rows']:,} dead rows; MB: {megabytes}"
        )


@contextmanager
def _old_snapshot(alias: str) -> Iterator[None]:
    reader = open_bench_gateway(alias).connection
    try:
        reader.execute("begin isolation level repeatable read", prepare=False)
        reader.execute("select count(*) from pgbroker.queue", prepare=False)
        yield
    finally:
        reader.close()


def _between(costs: list[Cost], begin: float, end: float) -> list[float]:
    return [cost.seconds for cost in costs if begin <= cost.at < end]
