"""The shape of a maintenance duty. Subclassed by one small module a duty, run by ``MaintenanceRunner``."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from django_pgbroker.store.gateway import Gateway


@dataclass(frozen=True)
class Swept:
    """What one tick did.

    Args:
        moved: how many rows.
        has_more: the batch came back full, so another tick at once may find more.
        woken_queues: names of queues with new pending jobs.
        reports: called once the tick is committed, in order; what was rolled back is never told.
    """

    moved: int
    has_more: bool = False
    woken_queues: frozenset[str] = frozenset()
    reports: tuple[Callable[[], None], ...] = ()


class Duty(ABC):
    """A statement with an interval.

    A tick runs in a transaction that holds the duty's lock: no other process is in the same duty at that time, and a
    tick that fails has done nothing. It must be right when it is skipped, repeated or run by another process next.
    """

    #: Names the lock and the events.
    name: str
    #: From the end of one tick to the next, give or take a tenth.
    interval_seconds: float
    #: Rows of one tick at most; fewer for a while after a time-out.
    batch_size: int = 1000
    #: Whether a tick that moves something is everyday business, told at debug level only.
    is_routine: bool = False
    #: False for a duty that commits in steps of its own and minds other processes by itself: no transaction, no lock.
    in_transaction: bool = True

    @abstractmethod
    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Move at most ``batch`` rows.

        Raises:
            psycopg.Error: the runner rolls back, logs, and comes again later.
        """
