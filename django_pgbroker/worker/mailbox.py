"""What reaches a worker's main thread: verdicts from the slots, and wakes. Safe to fill from signal handlers."""

from queue import Empty, SimpleQueue
from typing import NamedTuple

from django_pgbroker.domain.records import Verdict

#: The most verdicts that one turn acknowledges.
TURN_LIMIT = 2000


class Wake(NamedTuple):
    """Something has changed: a queue may have work, or, without a name, look at everything."""

    queue: str | None = None


class Mailbox:
    """One queue for all that the main thread waits for, so that one wait is enough."""

    def __init__(self) -> None:
        self._items: SimpleQueue[Verdict | Wake] = SimpleQueue()
        self.put = self._items.put

    @property
    def has_items(self) -> bool:
        """Whether something waits to be read."""
        return not self._items.empty()

    def wake(self, queue: str | None = None) -> None:
        """Have the main thread look at a queue, or at everything."""
        self._items.put(Wake(queue))

    def read(self, patience_seconds: float) -> tuple[list[Verdict], list[Wake]]:
        """Wait for the first item, then take all that is there, up to one turn's worth of verdicts."""
        verdicts: list[Verdict] = []
        wakes: list[Wake] = []
        get_next = self._items.get_nowait
        try:
            item = self._items.get(timeout=patience_seconds) if patience_seconds > 0 else get_next()
            while True:
                if isinstance(item, Verdict):
                    verdicts.append(item)
                    if len(verdicts) >= TURN_LIMIT:
                        break
                else:
                    wakes.append(item)
                item = get_next()
        except Empty:
            pass
        return verdicts, wakes
