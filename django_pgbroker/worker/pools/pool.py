"""The face of a pool: what the worker, the overseer and the drain ask of threads, event loop and child processes."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import Stop


class Running(NamedTuple):
    """A handler that runs, since ``begun_at`` in monotonic seconds."""

    claim: ClaimedJob
    begun_at: float


class Pool(Protocol):
    """Runs claims, each once, and delivers one verdict for each that was neither taken back nor abandoned.

    All methods may be called from any thread, and none of them waits for a handler, but ``close``.
    """

    @property
    def kind(self) -> ExecutorKind:
        """Which kind of executor it is."""

    @property
    def capacity(self) -> int:
        """How many handlers run at once at most."""

    @property
    def backlog_size(self) -> int:
        """Claims that wait for a free place."""

    @property
    def hung_count(self) -> int:
        """Abandoned handlers that have not ended: each holds a thread, memory and maybe a connection."""

    def start(self) -> None:
        """Make it ready to run claims."""

    def resize(self, capacity: int) -> None:
        """Run so many handlers at once from now on; what runs beyond that finishes, and nothing begins meanwhile."""

    def give(self, claims: Sequence[ClaimedJob]) -> None:
        """Add claims to the backlog; they begin in this order."""

    def take_back(self) -> list[ClaimedJob]:
        """Empty the backlog: these claims have not begun and never will here."""

    def running(self) -> list[Running]:
        """The handlers that run at this moment."""

    def running_ids(self) -> set[int]:
        """The jobs whose handlers run at this moment."""

    def interrupt(self, lease_token: int, stop: Stop, *, is_last_call: bool) -> None:
        """Have a handler end; what the context tells it is not this pool's business.

        Args:
            lease_token: of its claim; one that does not run is ignored.
            stop: why.
            is_last_call: False at once after the stop: by gentle means, such as ending the statement it waits for or
                cancelling its task. True after half of the grace: by any means that leave the process fit.
        """

    def abandon(self, lease_token: int) -> bool:
        """Give a handler up after its grace and put a fresh place beside it.

        Returns:
            True when the verdict is now the caller's to deliver: what the handler comes to will not be heard. False
            when it has just ended, or does not run here.
        """

    def close(self, timeout_seconds: float) -> None:
        """No claims will come any more: wait so long for idle places to end."""
