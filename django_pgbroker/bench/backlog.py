"""What a claim costs before a large backlog, beside a small one in the same table."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter

from django_pgbroker.bench.errors import BenchError
from django_pgbroker.bench.report import Report, conditions, milliseconds
from django_pgbroker.bench.scratch import JOB_TYPE, QUEUE, SMALL_QUEUE, add_jobs, empty_tables, scratch_database
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.claim import claim_jobs
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.identifiers import find_job_type_ids, find_queue_ids

BATCH = 100

#: The first claims of a connection plan their statement and read what is not in memory yet.
_WARM_UP = 10

_PROGRESS_CLAIMS = 100


@dataclass(frozen=True, kw_only=True)
class BacklogReport(Report):
    """Milliseconds of a claim of 100 jobs; ``ratio`` is the large backlog's p99 over the small one's."""

    pending: int
    small_pending: int
    claims: int
    batch: int
    p50_ms: float
    p99_ms: float
    small_p50_ms: float
    small_p99_ms: float
    ratio: float

    def summary(self) -> str:
        """The figures in one line for people."""
        return (
            f"{self.batch} jobs of {self.pending:,} claimed in p50 {self.p50_ms:.2f} ms, p99 {self.p99_ms:.2f}; "
            f"of {self.small_pending:,} in {self.small_p50_ms:.2f}, {self.small_p99_ms:.2f}; ratio {self.ratio:.2f} "
            f"({self.claims:,} claims each, in turns)"
        )


def measure_backlog(
    alias: str, *, pending: int, small_pending: int, claims: int, tell: Callable[[str], None] = lambda _: None
) -> BacklogReport:
    """Claim 100 jobs from a large queue and from a small one, in turns, each with the statement of the workers.

    Only the claim is timed. After it the jobs are acknowledged as completed, and as many are added, so that a queue is
    as long before every claim.

    Args:
        alias: its server is used, in a database of its own.
        pending: jobs of the large queue.
        small_pending: jobs of the small one.
        claims: timed claims of each, after ten that are not.
        tell: given a line of progress now and then.

    Raises:
        BenchError: a claim found fewer jobs than it asked for.
    """
    timed: dict[str, list[float]] = {QUEUE: [], SMALL_QUEUE: []}
    with scratch_database(alias) as gateway:
        empty_tables(gateway)
        add_jobs(gateway, pending, tell=tell)
        add_jobs(gateway, small_pending, SMALL_QUEUE)
        gateway.connection.execute("vacuum (analyze) pgbroker.job, pgbroker.job_payload", prepare=False)
        tell(f"seeded {pending:,} and {small_pending:,} jobs")
        for number in range(claims + _WARM_UP):
            for queue, seconds in timed.items():
                seconds.append(_time_claim(gateway, queue))
            if number and number % _PROGRESS_CLAIMS == 0:
                tell(f"{number:,} of {claims:,} claims: p50 {milliseconds(timed[QUEUE][_WARM_UP:], 50):.2f} ms")
        about = conditions(gateway)
    large, small = (seconds[_WARM_UP:] for seconds in timed.values())
    p99_ms, small_p99_ms = milliseconds(large, 99), milliseconds(small, 99)
    return BacklogReport(
        **about,
        pending=pending,
        small_pending=small_pending,
        claims=claims,
        batch=BATCH,
        p50_ms=milliseconds(large, 50),
        p99_ms=p99_ms,
        small_p50_ms=milliseconds(small, 50),
        small_p99_ms=small_p99_ms,
        ratio=round(p99_ms / small_p99_ms, 3),
    )


def _time_claim(gateway: Gateway, queue: str) -> float:
    """The seconds of one claim, as its caller waits for it; what follows keeps the queue as it was."""
    queue_id = find_queue_ids(gateway, [queue])[queue]
    job_type_ids = find_job_type_ids(gateway, [JOB_TYPE]).values()
    with gateway.transaction():
        began = perf_counter()
        claimed = claim_jobs(
            gateway, queue_id=queue_id, job_type_ids=job_type_ids, batch=BATCH, lease_seconds=60.0, worker_id=0
        )
        seconds = perf_counter() - began
    if len(claimed) != BATCH:
        raise BenchError(f"a claim of {BATCH} jobs found {len(claimed)}; something else works in this database")
    _complete(gateway, claimed)
    add_jobs(gateway, BATCH, queue)
    return seconds


def _complete(gateway: Gateway, claimed: Iterable[ClaimedJob]) -> None:
    verdicts = [Verdict(claim.id, claim.lease_token, Outcome.COMPLETED, JobState.COMPLETED) for claim in claimed]
    report = acknowledge_jobs(gateway, verdicts)
    if report.busy or report.stale:
        raise BenchError("an acknowledge was refused; something else works in this database")
