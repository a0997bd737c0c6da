"""What a running job can ask of, and tell, the worker that holds it: in its own process, or from a child process."""

from datetime import UTC, datetime
from typing import Protocol

from django_pgbroker.domain.progress import Progress
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import Stop


class JobLink(Protocol):
    """Asked from the thread or the loop of the handler; nothing here runs SQL or waits."""

    def find_stop(self, lease_token: int) -> Stop | None:
        """Why the handler of this claim should end, if it should."""

    def deadline_of(self, claim: ClaimedJob, elapsed_seconds: float) -> datetime | None:
        """When an attempt that began so long ago must be over, by the clock of the database."""

    def beat(self, lease_token: int) -> None:
        """The handler of this claim gets on."""

    def report_progress(self, job_id: int, lease_token: int, progress: Progress) -> None:
        """How far the handler of this claim is; only the newest counts."""

    def mark_memory(self, job_id: int, lease_token: int) -> None:
        """This job remembers steps or a cursor; told once in an attempt that uses them, before anything is written."""


def find_deadline(claim: ClaimedJob, elapsed_seconds: float, now: float | None) -> datetime | None:
    """When an attempt that began so long ago must be over: by its time-out or its deadline, whichever is first.

    Args:
        claim: of the job.
        elapsed_seconds: since the handler began.
        now: epoch seconds of the database's clock; None where it is not known yet.
    """
    ends = [] if claim.deadline_at is None else [claim.deadline_at]
    if now is not None and claim.timeout_seconds is not None:
        ends.append(now - elapsed_seconds + claim.timeout_seconds)
    return datetime.fromtimestamp(min(ends), UTC) if ends else None
