"""What a running job can ask of, and tell, the worker that holds it: in its own process, or from a child process."""

from datetime import datetime
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
