"""The values that travel between the floors: claims down to the slots, verdicts up to the database."""

from typing import NamedTuple

from django_pgbroker.domain.states import JobState, Outcome


class ClaimedJob(NamedTuple):
    """A job that this process holds a lease on. The fields are the columns of ``claim_jobs.sql``, in their order.

    Times are epoch seconds of the database's clock; ``arguments`` and ``headers`` are JSON as text. ``has_begun`` is
    false for a claim that waits in the process; ``left_behind`` counts jobs that are claimed only into a free slot.
    """

    id: int
    lease_token: int
    job_type_id: int
    tenant_id: int
    queue_id: int
    attempt: int
    max_attempts: int
    priority: int
    timeout_seconds: int | None
    interruptions: int
    claim_order: float
    deadline_at: float | None
    has_begun: bool
    version: int | None
    arguments: str | None
    headers: str | None
    correlation_id: str | None
    claim_seconds: float
    left_behind: int


class ErrorRecord(NamedTuple):
    """What is kept of an exception; every text can be stored by PostgreSQL."""

    error_class: str
    message: str
    traceback: str
    fingerprint: int


class Verdict(NamedTuple):
    """What one claim of a job comes to: the outcome of this execution and the next state of the job.

    ``result`` is JSON as text. ``delay_seconds`` counts from the acknowledge, for next states that wait. One of a
    transactional job ``is_recorded`` when it reaches the worker: there is nothing left to acknowledge.
    """

    job_id: int
    lease_token: int
    outcome: Outcome
    next_state: JobState
    delay_seconds: float = 0.0
    run_microseconds: int = 0
    result: str | None = None
    error: ErrorRecord | None = None
    reason: str | None = None
    is_recorded: bool = False


class AckReport(NamedTuple):
    """The exceptions of an acknowledge: ``busy`` ids are tried again, ``stale`` ids are no longer ours."""

    busy: frozenset[int]
    stale: frozenset[int]


class RenewalReport(NamedTuple):
    """The exceptions of a renewal: ``busy`` ids come next time, ``stale`` are lost, ``cancelled`` must end."""

    busy: frozenset[int]
    stale: frozenset[int]
    cancelled: frozenset[int]


class LapsedJob(NamedTuple):
    """A running job whose lease is over, as ``find_lapsed_jobs.sql`` saw it."""

    id: int
    lease_token: int
    attempt: int
    max_attempts: int
    has_begun: bool
    worker_id: int | None
    queue: str
    job_type: str


class OverdueJob(NamedTuple):
    """A running job that its worker should have stopped, as ``find_overdue_jobs.sql`` saw it."""

    id: int
    lease_token: int
    attempt: int
    max_attempts: int
    worker_id: int | None
    queue: str
    job_type: str
    seconds_over: float


class ReclaimedJob(NamedTuple):
    """A job that was taken back from a dead or stalled worker, and where it went."""

    id: int
    worker_id: int | None
    queue: str
    job_type: str
    attempt: int
    next_state: JobState


class Promotion(NamedTuple):
    """How many scheduled jobs became pending, the seconds until the next one is due (None: none waits), and how far.

    ``promoted_to`` is the latest time of those that moved, in epoch seconds; None when none did.
    """

    moved: int
    next_due_seconds: float | None
    promoted_to: float | None = None


class Orders(NamedTuple):
    """What operators ask of a worker, brought back by its heartbeat, and the database's time in epoch seconds.

    ``concurrency`` is how many handlers are to run at once (None: as at its start), ``paused_queues`` are to be left.
    """

    drain: bool
    stop: bool
    epoch_seconds: float
    concurrency: int | None = None
    paused_queues: frozenset[str] = frozenset()
