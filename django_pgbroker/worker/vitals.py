"""What a worker knows of its own health: noted by its main loop, asked by the health server in other threads."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django_pgbroker.worker.lease_keeper import LeaseKeeper

#: A main loop that has not come round for so long is stuck: no wait in it is longer than its bounds for the database.
LOOP_LIMIT_SECONDS = 60.0


@dataclass
class Vitals:
    """Signs of life of one worker.

    Args:
        name: of the worker.
        is_draining: answers whether it is asked to stop.
        is_database_away: answers whether its last turn failed for want of the database.
        loop_limit_seconds: how long the main loop may take for one round.
    """

    name: str
    is_draining: Callable[[], bool]
    is_database_away: Callable[[], bool]
    loop_limit_seconds: float = LOOP_LIMIT_SECONDS
    worker_id: int | None = None
    _keeper: LeaseKeeper | None = None
    _running_ids: Callable[[], set[int]] = set
    _moved_at: float = field(default_factory=time.monotonic)
    _turn_at: float | None = None

    def attach(self, worker_id: int, keeper: LeaseKeeper, running_ids: Callable[[], set[int]]) -> None:
        """The worker is registered."""
        self._keeper, self._running_ids, self.worker_id = keeper, running_ids, worker_id

    def note_move(self) -> None:
        """The main loop comes round."""
        self._moved_at = time.monotonic()

    def note_turn(self) -> None:
        """A turn has gone well."""
        self._turn_at = time.monotonic()

    def find_deadly(self) -> str | None:
        """Why this process should be killed and started anew; None while it lives."""
        silence = time.monotonic() - self._moved_at
        if silence > self.loop_limit_seconds:
            return f"the main loop has not moved for {silence:.0f} s"
        # an idle worker that waits for its database is as good as a fresh one would be
        if self._keeper and self._keeper.is_trust_over and self._running_ids():
            return "the leases of running jobs cannot be renewed"
        return None

    def find_unready(self) -> str | None:
        """Why this worker takes no new jobs; None while it does."""
        if self._keeper is None:
            return "not registered yet"
        if self.is_draining():
            return "draining"
        if self.is_database_away() or self._keeper.is_trust_over:
            return "the database does not answer"
        return self.find_deadly()

    def describe(self) -> dict[str, Any]:
        """What both answers show."""
        now = time.monotonic()
        return {
            "worker": self.name,
            "worker_id": self.worker_id,
            "running": len(self._running_ids()),
            "seconds_since_last_turn": None if self._turn_at is None else round(now - self._turn_at, 3),
            "seconds_since_last_renewal": round(self._keeper.seconds_since_renewal, 3) if self._keeper else None,
            "draining": self.is_draining(),
        }
