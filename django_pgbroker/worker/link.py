"""What a running job can ask of, and tell, the worker that holds it: in its own process, or from a child process."""

from datetime import datetime
from typing import Protocol

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import Stop


class JobLink(Protocol):
    """Asked from the thread or the loop of the handler; nothing here runs SQL or waits."""

    def find_stop(self, lease_token: int) -> Stop | None:
        """Why the handler of this claim should end, if it should."""

    def deadline_of(self, claim: ClaimedJob) -> datetime | None:
        """When this attempt must be over, by the clock of the database, asked as it begins."""

    def beat(self, lease_token: int) -> None:
        """The handler of this claim gets on."""
