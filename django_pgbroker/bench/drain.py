"""How fast one worker process empties a queue, beside a floor without a broker's work in it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from django_pgbroker.bench.crew import start_crew, wait_until_completed
from django_pgbroker.bench.floor import drain_by_statements, run_in_plain_threads, seconds_of_drain
from django_pgbroker.bench.handlers import make_atomic_handler, make_orm_handler, make_rows
from django_pgbroker.bench.process_figures import resident_mb
from django_pgbroker.bench.report import Report, conditions, middle, rounded
from django_pgbroker.bench.scratch import QUEUE, scratch_database, seed
from django_pgbroker.bench.worker_process import Assignment
from django_pgbroker.operations.queues import pause_queue, resume_queue
from django_pgbroker.runtime.announcer import announce
from django_pgbroker.store.gateway import Gateway

_ACTOR = "pgbroker_bench"

#: Handlers whose floor is the same worker with a handler that does nothing in a thread.
_BESIDE_THREADS = ("async", "process", "middleware")

#: What the measured jobs can do, and where.
HANDLERS = ("noop", "orm", "atomic", *_BESIDE_THREADS)


@dataclass(frozen=True, kw_only=True)
class DrainReport(Report):
    """Rates in jobs per second, medians over interleaved pairs, and what lies behind them.

    ``rss_mb`` is the memory of the worker process after the last run, None on systems without /proc.
    """

    jobs: int
    concurrency: int
    handler: str
    jobs_per_second: float
    floor_jobs_per_second: float
    ratio: float
    wal_bytes_per_job: float
    rss_mb: float | None
    runs: list[dict[str, float]]

    def summary(self) -> str:
        """The figures in one line for people."""
        memory = "" if self.rss_mb is None else f", {self.rss_mb:,.0f} MB"
        return (
            f"{self.jobs_per_second:,.0f} jobs/s, floor {self.floor_jobs_per_second:,.0f}, ratio {self.ratio:.2f}, "
            f"{self.wal_bytes_per_job:,.0f} bytes of WAL a job{memory} "
            f"(median of {len(self.runs)} interleaved pairs of {self.jobs:,} jobs, handler {self.handler})"
        )


def measure_drain(
    alias: str, *, jobs: int, concurrency: int, runs: int, handler: str, tell: Callable[[str], None] = lambda _: None
) -> DrainReport:
    """Drain ``jobs`` jobs by a worker process and by a floor, in turns.

    For ``noop`` the floor claims and acknowledges 200 jobs at a time over one connection, with the same history kept
    and nothing in between: no threads, no handlers, no leases to renew. Both pay for the same rows. For ``orm`` and
    ``atomic`` it is the handler in a pool of as many threads, without any queue, for ``atomic`` in a transaction. For
    ``async``, ``process`` and ``middleware`` it is the same worker with the same jobs in its threads.

    Args:
        alias: its server is used, in a database of its own.
        jobs: of one run.
        concurrency: slots of the worker.
        runs: pairs; the medians count.
        handler: one of ``HANDLERS``.
        tell: given a line of progress now and then.

    Raises:
        BenchError: not every job was completed.
    """
    pairs: list[dict[str, float]] = []
    with scratch_database(alias) as gateway:
        assignment = Assignment(alias, gateway.connection.info.dbname, handler, concurrency)
        make_rows(gateway)
        for number in range(1, runs + 1):
            floor = _measure_floor(gateway, assignment, jobs, tell)
            drained = drain_by_crew(gateway, assignment, 1, jobs, tell)
            ratio = drained["jobs_per_second"] / floor
            pairs.append({**drained, "floor_jobs_per_second": floor, "ratio": ratio})
            tell(f"run {number}: {drained['jobs_per_second']:,.0f} jobs/s, floor {floor:,.0f}, ratio {ratio:.2f}")
        about = conditions(gateway)
    return DrainReport(
        **about,
        jobs=jobs,
        concurrency=concurrency,
        handler=handler,
        jobs_per_second=round(middle(pairs, "jobs_per_second")),
        floor_jobs_per_second=round(middle(pairs, "floor_jobs_per_second")),
        ratio=round(middle(pairs, "ratio"), 3),
        wal_bytes_per_job=round(middle(pairs, "wal_bytes_per_job")),
        rss_mb=pairs[-1].get("rss_mb"),
        runs=[rounded(pair) for pair in pairs],
    )


def _measure_floor(gateway: Gateway, assignment: Assignment, jobs: int, tell: Callable[[str], None]) -> float:
    if assignment.handler in _BESIDE_THREADS:
        return drain_by_crew(gateway, replace(assignment, handler="noop"), 1, jobs, tell)["jobs_per_second"]
    if assignment.handler == "noop":
        return drain_by_statements(gateway, jobs)
    make = make_orm_handler if assignment.handler == "orm" else make_atomic_handler
    return run_in_plain_threads(assignment.alias, make(assignment.alias), jobs, assignment.concurrency)


def drain_by_crew(
    gateway: Gateway, assignment: Assignment, processes: int, jobs: int, tell: Callable[[str], None]
) -> dict[str, float]:
    """Let worker processes that wait idle before a paused queue empty it.

    Args:
        gateway: of the scratch database.
        assignment: what each process is told.
        processes: how many.
        jobs: made anew; nothing else is in the database.
        tell: given a line every five seconds.

    Returns:
        ``jobs_per_second`` from the first claim to the last acknowledge and ``wal_bytes_per_job``; and, where there is
        /proc, the memory of all processes: ``rss_mb`` at the end and ``rss_before_mb``.

    Raises:
        BenchError: not every job was completed.
    """
    pause_queue(QUEUE, actor=_ACTOR, using=assignment.alias)
    seed(gateway, jobs, tell)
    with start_crew(gateway, assignment, processes) as members:
        process_ids = [member.process_id for member in members]
        memory_before = _memory(process_ids)
        wal_before = _wal_position(gateway)
        resume_queue(QUEUE, actor=_ACTOR, using=assignment.alias)
        announce(assignment.alias, QUEUE)

        def tell_progress(done: int) -> None:
            memory = _memory(process_ids).get("rss_mb")
            tell(f"{done:,} of {jobs:,} jobs" + ("" if memory is None else f", {memory:,.1f} MB"))

        wait_until_completed(gateway, jobs, members, tell_progress)
        wal = (_wal_position(gateway) - wal_before) / jobs
        memory = _memory(process_ids)
    before = {"rss_before_mb": memory_before["rss_mb"]} if memory_before else {}
    rate = jobs / seconds_of_drain(gateway, jobs)
    return {"jobs_per_second": rate, "wal_bytes_per_job": wal, **memory, **before}


def _memory(process_ids: list[int]) -> dict[str, float]:
    sizes = [resident_mb(process_id) for process_id in process_ids]
    known = [size for size in sizes if size is not None]
    return {"rss_mb": round(sum(known), 1)} if len(known) == len(sizes) else {}


def _wal_position(gateway: Gateway) -> float:
    query = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8"
    [(position,)] = gateway.connection.execute(query, prepare=False).fetchall()
    return float(position)
