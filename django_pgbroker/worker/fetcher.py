"""Decide how many jobs to claim, and from which queues. Asked in every turn."""

import math
import random
from collections.abc import Sequence

from django_pgbroker.worker.lane import Lane, Look

#: So much work waits in the process at most, by how long handlers take: fast ones get hundreds, slow ones none.
_PREFETCH_SECONDS = 0.1

#: What would wait for longer than this goes back: other workers may have a free slot.
_PATIENCE_SECONDS = 1.0

#: Weight of the newest measurement in the mean.
_SMOOTHING = 0.3

#: No handler counts as shorter; a worker does other things too.
_SHORTEST_SECONDS = 0.00001


class Fetcher:
    """Shares the free room of one worker among its queues.

    Args:
        lanes: the queues.
        concurrency: handlers that run at once.
        prefetch_limit: the most jobs to claim beyond that.
        is_strict: the queues are served in their order; a later one gets what the earlier ones do not need.
    """

    def __init__(
        self, lanes: Sequence[Lane], concurrency: int, prefetch_limit: int, *, is_strict: bool = False
    ) -> None:
        self.lanes = lanes
        self._concurrency = concurrency
        self._prefetch_limit = prefetch_limit
        self._is_strict = is_strict
        self._position = 0
        self._handler_seconds: float | None = None

    @property
    def open_lanes(self) -> list[Lane]:
        """The queues that no operator asked this worker to leave."""
        return [lane for lane in self.lanes if not lane.is_paused]

    def resize(self, concurrency: int) -> None:
        """So many handlers run at once from now on."""
        self._concurrency = concurrency

    @property
    def target(self) -> int:
        """How many claims this process should hold: its slots, and what they finish within a tenth of a second.

        Not what the whole process finishes: where many share the processors, each would claim ever less at once.
        """
        return self._concurrency + min(self._prefetch_limit, int(self._jobs_per_second * _PREFETCH_SECONDS))

    @property
    def _jobs_per_second(self) -> float:
        """What the slots could finish if they were always busy."""
        return self._concurrency / self._handler_seconds if self._handler_seconds else 0.0

    def measure(self, jobs: int, run_seconds: float) -> None:
        """Take in how long the handlers of so many jobs took together."""
        newest = max(run_seconds / jobs, _SHORTEST_SECONDS)
        known = newest if self._handler_seconds is None else self._handler_seconds
        self._handler_seconds = known + _SMOOTHING * (newest - known)

    def is_too_long(self, backlog_size: int) -> bool:
        """Whether the last of so many waiting claims would begin too late."""
        return backlog_size > self._concurrency and backlog_size > self._jobs_per_second * _PATIENCE_SECONDS

    def forget_rate(self) -> None:
        """The backlog has stalled: claim for free slots alone until it is known again how long handlers take."""
        self._handler_seconds = None

    def has_room(self, held: int) -> bool:
        """Whether a claim is worth a statement: a slot is free, or a quarter of the target.

        A queue may have jobs that are only claimed into a free slot: then nothing is claimed until there is one.
        """
        if held < self._concurrency:
            return True
        needs_free_slot = any(lane.needs_free_slot for lane in self.open_lanes)
        return not needs_free_slot and self.target - held >= max(self.target // 4, 1)

    def seconds_to_next_look(self, now: float) -> float:
        """How long until some queue is to be looked at; infinite where all are to be left."""
        return max(0.0, min((lane.next_look_at for lane in self.open_lanes), default=math.inf) - now)

    def plan(self, held: int, now: float) -> list[Look]:
        """The looks of this turn: the free room, shared among the queues that are due, or all of it for the next one.

        Args:
            held: claims that this process holds already.
            now: monotonic seconds.
        """
        if not self.has_room(held):
            self._position = 0
            return []
        room, free = self.target - held, max(self._concurrency - held, 0)
        if self._is_strict:
            return [lane.look(room, now, begin=min(room, free)) for lane in self._next_in_order(now)]
        return self._share(room, free, now)

    def _next_in_order(self, now: float) -> list[Lane]:
        """The queue to ask in strict order: only a round that found all earlier ones short comes to a later one.

        So an earlier queue is asked again before each look into a later one, whether or not it is due.
        """
        lanes = self.open_lanes
        due = [position for position, lane in enumerate(lanes) if lane.next_look_at <= now]
        if not due:
            return []
        # an earlier queue that is due again gave all that was asked, or was woken: a new round
        position = self._position if self._position <= due[0] else 0
        self._position = position + 1 if position < due[-1] else 0
        return [lanes[position]]

    def _share(self, room: int, free: int, now: float) -> list[Look]:
        due = [lane for lane in self.open_lanes if lane.next_look_at <= now]
        shares = share_by_weight(room, [lane.weight for lane in due])
        looks = []
        for lane, share in zip(due, shares, strict=True):
            if share:
                looks.append(lane.look(share, now, begin=min(share, free)))
                free -= looks[-1].begin
        return looks


def share_by_weight(room: int, weights: Sequence[int]) -> list[int]:
    """Split ``room`` in proportion to ``weights``; what does not divide is drawn, so that small shares come up."""
    total = sum(weights)
    if room <= 0 or not total:
        return [0] * len(weights)
    exact = [room * weight / total for weight in weights]
    shares = [math.floor(share) for share in exact]
    for _ in range(room - sum(shares)):
        rests = [share - given for share, given in zip(exact, shares, strict=True)]
        # Never all zero or below: the rests sum up to what is still to be given.
        [winner] = random.choices(range(len(weights)), [max(rest, 0.0) for rest in rests])  # noqa: S311 - no secret
        shares[winner] += 1
    return shares
