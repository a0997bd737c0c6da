"""One queue as a worker sees it: when to look there next, and for what. Used by the fetcher."""

import math
import random
from typing import NamedTuple

from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.records import ClaimedJob, Promotion
from django_pgbroker.store.claim import NO_FLOOR
from django_pgbroker.worker.claim_floor import ClaimFloor

#: Scheduled jobs are looked for this often even where none is known.
_PROMOTE_SECONDS = 1.0

#: A promotion starts so far below the last one, and at the beginning so often: jobs may have been committed late.
_PROMOTE_MARGIN_SECONDS = 1.0
_PROMOTE_HEAD_SECONDS = 10.0

#: Wakes in vain, as rivals were sooner, have the next look come within a time that doubles from here to there.
_FIRST_SPREAD_SECONDS = 0.001
_LONGEST_SPREAD_SECONDS = 0.25


class Look(NamedTuple):
    """One look into a queue: how many jobs to claim, how many of them begin, from where, and from where to promote.

    ``floor`` and ``promote_floor`` are epoch seconds; None promotes nothing.
    """

    lane: "Lane"
    batch: int
    begin: int
    floor: float
    promote_floor: float | None
    is_woken: bool


class Lane:
    """The state of one queue in one worker, for the job types of one pool. All times are monotonic seconds.

    Args:
        name: of the queue.
        weight: beside the other lanes.
        queue_id: of the queue.
        kind: of the pool that runs the jobs.
        job_type_ids: what to claim, as an array's text.
        poll_min_seconds: the first pause after a look that found nothing.
        poll_max_seconds: the longest pause.
    """

    def __init__(
        self,
        name: str,
        weight: int,
        queue_id: int,
        poll_min_seconds: float,
        poll_max_seconds: float,
        *,
        kind: ExecutorKind = ExecutorKind.THREAD,
        job_type_ids: str = "{}",
    ) -> None:
        self.name = name
        self.weight = weight
        self.queue_id = queue_id
        self.kind = kind
        self.job_type_ids = job_type_ids
        self.is_empty = False
        #: Whether an operator asked this worker to leave the queue.
        self.is_paused = False
        self.needs_free_slot = False
        self.next_look_at = 0.0
        self._poll_min = poll_min_seconds
        self._poll_max = poll_max_seconds
        self._pause = poll_min_seconds
        self._claim_floor = ClaimFloor()
        self._is_idle = True
        self._is_woken = False
        self._has_news = False
        self._spread = 0.0
        self._next_due_at = 0.0
        self._promoted_at = 0.0
        self._promoted_to = NO_FLOOR
        self._promote_head_at = -math.inf

    def wake(self, now: float) -> None:
        """Look soon: there may be work, even urgent work. At once, unless others have been sooner again and again."""
        # drawn anew by each wake, the least of many would come at once
        if not self._is_woken or not self._spread:
            self.next_look_at = min(self.next_look_at, now + self._spread * random.random())  # noqa: S311 - no secret
        self._next_due_at = 0.0
        self._pause = self._poll_min
        self._is_woken = self._has_news = True

    def resume(self, now: float) -> None:
        """Look at once: this worker is to take the queue up again."""
        self.is_paused = False
        self.next_look_at = now
        self.wake(now)

    def expect(self, due_at: float) -> None:
        """A job of this queue will be due then."""
        self._next_due_at = min(self._next_due_at, due_at)
        self.next_look_at = min(self.next_look_at, due_at)

    def look(self, batch: int, now: float, begin: int | None = None) -> Look:
        """The next look into this queue, for ``batch`` jobs of which ``begin``, by default all, find a free slot."""
        is_woken, has_news = self._is_woken, self._has_news
        self._is_woken = self._has_news = False
        floor = self._claim_floor.choose(now, is_idle=self._is_idle, has_news=has_news)
        is_promotion_due = now >= min(self._next_due_at, self._promoted_at + _PROMOTE_SECONDS)
        promote_floor = self._choose_promote_floor(now) if is_promotion_due else None
        return Look(self, batch, batch if begin is None else begin, floor, promote_floor, is_woken)

    def _choose_promote_floor(self, now: float) -> float:
        if now - self._promote_head_at < _PROMOTE_HEAD_SECONDS:
            return self._promoted_to - _PROMOTE_MARGIN_SECONDS
        self._promote_head_at = now
        return NO_FLOOR

    def learn(self, look: Look, claims: list[ClaimedJob], promotion: Promotion | None, now: float) -> None:
        """Take in what a look has found and decide when the next one is due."""
        is_vain = not claims
        if promotion is not None:
            self._learn_promotion(look, promotion, now)
            is_vain = is_vain and not promotion.moved
        if claims:
            self._claim_floor.learn(look.floor, claims)
            self.needs_free_slot = claims[0].left_behind > 0
        if look.is_woken and self._is_idle:
            self._spread = self._next_spread(is_vain=is_vain)
        self._is_idle = not claims
        self.is_empty = not claims and look.floor == NO_FLOOR
        self._plan_next_look(look, len(claims), now)

    def _learn_promotion(self, look: Look, promotion: Promotion, now: float) -> None:
        self._promoted_at = now
        due_in = promotion.next_due_seconds
        self._next_due_at = now if promotion.moved >= look.batch else math.inf if due_in is None else now + due_in
        if promotion.moved:
            self._has_news = True
            self._promoted_to = max(self._promoted_to, promotion.promoted_to or NO_FLOOR)

    def _next_spread(self, *, is_vain: bool) -> float:
        if is_vain:
            return min(max(self._spread * 2, _FIRST_SPREAD_SECONDS), _LONGEST_SPREAD_SECONDS)
        return self._spread / 2 if self._spread > _FIRST_SPREAD_SECONDS else 0.0

    def _plan_next_look(self, look: Look, found: int, now: float) -> None:
        if found:
            self._pause = self._poll_min
        if found >= look.batch:
            self.next_look_at = now
            return
        jitter = 0.75 + random.random() / 2  # noqa: S311 - against herds, not a secret
        self.next_look_at = min(now + self._pause * jitter, self._next_due_at)
        self._pause = min(self._pause * 2, self._poll_max)
        if look.floor != NO_FLOOR:
            self.next_look_at = min(self.next_look_at, self._claim_floor.next_head_at)
