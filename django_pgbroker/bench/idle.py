"""What a worker process costs that has nothing to do: memory, processor and transactions."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from django_pgbroker.bench.crew import Member, start_crew
from django_pgbroker.bench.errors import BenchError
from django_pgbroker.bench.process_figures import processor_seconds, resident_mb
from django_pgbroker.bench.report import Report, conditions
from django_pgbroker.bench.scratch import scratch_database
from django_pgbroker.bench.worker_process import Assignment
from django_pgbroker.store.gateway import Gateway

#: An idle session reports what it has done after ten seconds at the latest, and a worker's polls are rare by then.
_SETTLE_SECONDS = 12.0

_PROGRESS_SECONDS = 10.0

_FLUSH = "select pg_stat_force_next_flush()"

#: The statement that reads first and the one that flushes last are counted between two looks.
_OWN_TRANSACTIONS = 2

_TRANSACTIONS = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"


@dataclass(frozen=True, kw_only=True)
class IdleReport(Report):
    """``rss_mb`` at the end, ``cpu_percent`` of one processor, and transactions of the worker's sessions per second."""

    seconds: float
    rss_mb: float
    cpu_percent: float
    transactions_per_second: float

    def summary(self) -> str:
        """The figures in one line for people."""
        return (
            f"{self.rss_mb:,.1f} MB, {self.cpu_percent:.2f} % of a processor, "
            f"{self.transactions_per_second:.2f} transactions/s (one worker with its duties, {self.seconds:g} s)"
        )


def measure_idle(alias: str, *, seconds: float, tell: Callable[[str], None] = lambda _: None) -> IdleReport:
    """Watch one worker process with default options and the duties, on an empty queue.

    Args:
        alias: its server is used, in a database of its own.
        seconds: how long, after twelve in which it comes to rest.
        tell: given a line of progress every ten seconds.

    Raises:
        BenchError: this system has no /proc, or the worker ended.
    """
    with scratch_database(alias) as gateway:
        # so that autovacuum, whose transactions count too, finds nothing to do
        gateway.connection.execute("vacuum (analyze)", prepare=False)
        assignment = Assignment(alias, gateway.connection.info.dbname, has_duties=True)
        with start_crew(gateway, assignment) as [member]:
            _watch(member, _SETTLE_SECONDS, lambda _: None)
            processor, transactions, began = _processor(member), _transactions(gateway), time.monotonic()
            _watch(member, seconds, tell)
            transactions = _transactions(gateway) - transactions - _OWN_TRANSACTIONS
            processor = _processor(member) - processor
            passed = time.monotonic() - began
            rss_mb = resident_mb(member.process_id) or 0.0
        about = conditions(gateway)
    return IdleReport(
        **about,
        seconds=seconds,
        rss_mb=rss_mb,
        cpu_percent=round(100 * processor / passed, 3),
        transactions_per_second=round(transactions / passed, 3),
    )


def _watch(member: Member, seconds: float, tell: Callable[[str], None]) -> None:
    began = told_at = time.monotonic()
    while (now := time.monotonic()) < began + seconds:
        member.check()
        if now - told_at > _PROGRESS_SECONDS:
            told_at = now
            tell(f"{now - began:.0f} of {seconds:g} s, {resident_mb(member.process_id)} MB")
        time.sleep(min(0.5, seconds))


def _processor(member: Member) -> float:
    seconds = processor_seconds(member.process_id)
    if seconds is None:
        raise BenchError("this system has no /proc, from which memory and processor time are read; idle needs Linux")
    return seconds


def _transactions(gateway: Gateway) -> int:
    gateway.connection.execute(_FLUSH, prepare=False)
    [(count,)] = gateway.connection.execute(_TRANSACTIONS, prepare=False).fetchall()
    return int(count)
