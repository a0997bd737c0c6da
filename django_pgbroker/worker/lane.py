"""One queue as a worker sees it: when to look there next, and from where. Used by the fetcher."""

import math
import random
from typing import NamedTuple

from django_pgbroker.domain.records import ClaimedJob, Promotion
from django_pgbroker.store.claim import NO_FLOOR

#: A claim is dear when it takes longer than this: dead entries have piled up at the head of the claim index.
_DEAR_SECONDS = 0.003

#: What locking one candidate costs at most; a large batch is not dear for being large.
_SECONDS_PER_JOB = 0.00002

#: While claims are dear, a look from the beginning comes after this at the earliest, and takes so much of the time.
_HEAD_SECONDS = 1.0
_HEAD_SHARE = 0.05

#: Where claims come many times a second, fewer than one in a hundred may be a dear one, but after so long it comes.
_LOOKS_A_HEAD = 200
_LONGEST_HEAD_SECONDS = 10.0
_MANY_A_SECOND = 4

#: How far below the last claim a bounded one starts, past the dead entries of as long a time; what is urgent or commits
#: later than that lies lower and waits for a look from the beginning.
_MARGIN_SECONDS = 0.25

#: Scheduled jobs are looked for this often even where none is known.
_PROMOTE_SECONDS = 1.0


class Look(NamedTuple):
    """One look into a queue: how many jobs to claim, how many of them begin, from where, and whether to promote."""

    lane: "Lane"
    batch: int
    begin: int
    floor: float
    promotes: bool


class Lane:
    """The state of one queue in one worker. All times are this process's monotonic seconds.

    Args:
        name: of the queue.
        weight: beside the other lanes.
        queue_id: of the queue.
        poll_min_seconds: the first pause after a look that found nothing.
        poll_max_seconds: the longest pause.
    """

    def __init__(self, name: str, weight: int, queue_id: int, poll_min_seconds: float, poll_max_seconds: float) -> None:
        self.name = name
        self.weight = weight
        self.queue_id = queue_id
        self.is_empty = False
        self.needs_free_slot = False
        self.next_look_at = 0.0
        self._poll_min = poll_min_seconds
        self._poll_max = poll_max_seconds
        self._pause = poll_min_seconds
        self._next_due_at = 0.0
        self._promoted_at = 0.0
        self._claimed_to = NO_FLOOR
        self._is_dear = False
        self._is_idle = True
        self._is_woken = False
        self._head_at = 0.0
        self._head_cost = 0.0
        self._looks_since_head = 0

    def wake(self) -> None:
        """Look at once, and in an idle queue from the beginning: there may be urgent work.

        A queue that gives jobs is woken many times a second; each of these looks would be a dear one.
        """
        self.next_look_at = 0.0
        self._next_due_at = 0.0
        self._pause = self._poll_min
        self._is_woken = True

    def expect(self, due_at: float) -> None:
        """A job of this queue will be due then."""
        self._next_due_at = min(self._next_due_at, due_at)
        self.next_look_at = min(self.next_look_at, due_at)

    def look(self, batch: int, now: float, begin: int | None = None) -> Look:
        """The next look into this queue, for ``batch`` jobs of which ``begin``, by default all, find a free slot."""
        is_bounded = self._is_dear and not self._is_head_due(now)
        self._is_woken = False
        if is_bounded:
            self._looks_since_head += 1
        else:
            self._looks_since_head = 0
            self._head_at = now
        floor = self._claimed_to - _MARGIN_SECONDS if is_bounded else NO_FLOOR
        promotes = now >= min(self._next_due_at, self._promoted_at + _PROMOTE_SECONDS)
        return Look(self, batch, batch if begin is None else begin, floor, promotes)

    def _is_head_due(self, now: float) -> bool:
        passed = now - self._head_at
        fair_seconds = self._head_cost / _HEAD_SHARE
        if self._is_idle:
            return passed >= (min(fair_seconds, _HEAD_SECONDS) if self._is_woken else _HEAD_SECONDS)
        if passed < max(_HEAD_SECONDS, fair_seconds):
            return passed >= _LONGEST_HEAD_SECONDS
        is_rarely_claimed = self._looks_since_head < _MANY_A_SECOND * passed
        return is_rarely_claimed or self._looks_since_head >= _LOOKS_A_HEAD or passed >= _LONGEST_HEAD_SECONDS

    def learn(self, look: Look, claims: list[ClaimedJob], promotion: Promotion | None, now: float) -> None:
        """Take in what a look has found and decide when the next one is due."""
        if promotion is not None:
            self._promoted_at = now
            due_in = promotion.next_due_seconds
            self._next_due_at = now if promotion.moved >= look.batch else math.inf if due_in is None else now + due_in
            self._is_woken |= promotion.moved > 0
        if claims:
            self._learn_cost(look, claims)
            self.needs_free_slot = claims[0].left_behind > 0
        self._is_idle = not claims
        self.is_empty = not claims and look.floor == NO_FLOOR
        self._plan_next_look(look, len(claims), now)

    def _learn_cost(self, look: Look, claims: list[ClaimedJob]) -> None:
        if look.floor != NO_FLOOR:
            self._claimed_to = max(self._claimed_to, claims[-1].claim_order)
            return
        # Down, too: after a look that found only urgent jobs the others come when those are done.
        self._claimed_to = claims[-1].claim_order
        self._head_cost = min(claim.claim_seconds for claim in claims)
        self._is_dear = self._head_cost > _DEAR_SECONDS + len(claims) * _SECONDS_PER_JOB

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
            self.next_look_at = min(self.next_look_at, self._head_at + _HEAD_SECONDS)
