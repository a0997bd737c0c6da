"""What several worker processes on one queue gain over one."""

from collections.abc import Callable
from dataclasses import dataclass

from django_pgbroker.bench.drain import drain_by_crew
from django_pgbroker.bench.handlers import make_rows
from django_pgbroker.bench.report import Report, conditions, middle, rounded
from django_pgbroker.bench.scratch import scratch_database
from django_pgbroker.bench.worker_process import Assignment


@dataclass(frozen=True, kw_only=True)
class ProcessesReport(Report):
    """Rates in jobs per second, medians over interleaved pairs.

    ``jobs_per_second`` and ``wal_bytes_per_job`` are those of all processes together, ``rss_mb`` their memory after the
    last run, None on systems without /proc.
    """

    jobs: int
    processes: int
    concurrency: int
    handler: str
    jobs_per_second: float
    one_process_jobs_per_second: float
    ratio: float
    wal_bytes_per_job: float
    rss_mb: float | None
    runs: list[dict[str, float]]

    def summary(self) -> str:
        """The figures in one line for people."""
        return (
            f"{self.processes} processes {self.jobs_per_second:,.0f} jobs/s, "
            f"one {self.one_process_jobs_per_second:,.0f}, ratio {self.ratio:.2f} "
            f"(median of {len(self.runs)} interleaved pairs of {self.jobs:,} jobs, handler {self.handler}, "
            f"{self.concurrency} slots each)"
        )


def measure_processes(
    alias: str,
    *,
    jobs: int,
    processes: int,
    concurrency: int,
    runs: int,
    handler: str,
    tell: Callable[[str], None] = lambda _: None,
) -> ProcessesReport:
    """Drain ``jobs`` jobs by one worker process and by several, in turns.

    All of them are up and idle before the jobs can be claimed.

    Args:
        alias: its server is used, in a database of its own.
        jobs: of one run.
        processes: how many against one.
        concurrency: slots of each.
        runs: pairs; the medians count.
        handler: ``noop`` or ``orm``.
        tell: given a line of progress now and then.

    Raises:
        BenchError: not every job was completed.
    """
    pairs: list[dict[str, float]] = []
    with scratch_database(alias) as gateway:
        assignment = Assignment(alias, gateway.connection.info.dbname, handler, concurrency)
        make_rows(gateway)
        for number in range(1, runs + 1):
            one = drain_by_crew(gateway, assignment, 1, jobs, tell)["jobs_per_second"]
            together = drain_by_crew(gateway, assignment, processes, jobs, tell)
            rate = together["jobs_per_second"]
            pairs.append({**together, "one_process_jobs_per_second": one, "ratio": rate / one})
            tell(f"run {number}: {processes} processes {rate:,.0f} jobs/s, one {one:,.0f}, ratio {rate / one:.2f}")
        about = conditions(gateway)
    return ProcessesReport(
        **about,
        jobs=jobs,
        processes=processes,
        concurrency=concurrency,
        handler=handler,
        jobs_per_second=round(middle(pairs, "jobs_per_second")),
        one_process_jobs_per_second=round(middle(pairs, "one_process_jobs_per_second")),
        ratio=round(middle(pairs, "ratio"), 3),
        wal_bytes_per_job=round(middle(pairs, "wal_bytes_per_job")),
        rss_mb=pairs[-1].get("rss_mb"),
        runs=[rounded(pair) for pair in pairs],
    )
