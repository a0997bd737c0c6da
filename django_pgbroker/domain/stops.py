"""Why a running handler is asked to end, and the exception that ends it. For the workers and for handlers."""

from enum import Enum
from typing import NamedTuple


class StopKind(Enum):
    """What happened to the job or to its worker."""

    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    DRAINING = "draining"
    LOST = "lost"


class Stop(NamedTuple):
    """That a handler should end, and why."""

    kind: StopKind
    reason: str


class JobStopped(BaseException):
    """Raised inside a handler that must end: its job was cancelled or timed out, or its worker has to go.

    No ``Exception``, so that ``except Exception`` lets it pass; clean up in ``finally`` and let it go on.

    Args:
        stop: what the worker was told.
    """

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.reason)
        self.stop = stop

    @property
    def kind(self) -> StopKind:
        """Why the handler must end."""
        return self.stop.kind
