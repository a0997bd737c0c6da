"""Where in the claim index a lane starts to look: beside an old transaction its head is dear (decision 11)."""

from collections import deque

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.store.claim import NO_FLOOR

#: A claim is dear when it takes longer than this: dead entries have piled up at the head of the claim index.
_DEAR_SECONDS = 0.003

#: What locking one candidate costs at most; a large batch is not dear for being large.
_SECONDS_PER_JOB = 0.00002

#: The head is dear when so many looks there in a row were: a single one may have waited for a processor.
_PROOFS = 3

#: While the head is dear, a look there comes after this at the earliest, and takes so much of the time.
_HEAD_SECONDS = 1.0
_HEAD_SHARE = 0.05

#: Where claims come many times a second, fewer than one in a hundred may be a dear one, but after so long it comes.
_LOOKS_A_HEAD = 200
_LONGEST_HEAD_SECONDS = 10.0
_MANY_A_SECOND = 4

#: How far below the last claim a bounded one starts, past the dead entries of as long a time; what is urgent or commits
#: later than that lies lower and waits for a look at the head.
_MARGIN_SECONDS = 0.25


class ClaimFloor:
    """How far one lane has claimed, and when it looks at the head again. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._claimed_to = NO_FLOOR
        self._costs: deque[float] = deque(maxlen=_PROOFS)
        self._head_at = 0.0
        self._looks_since_head = 0

    @property
    def next_head_at(self) -> float:
        """When the head is looked at again at the earliest."""
        return self._head_at + _HEAD_SECONDS

    @property
    def _is_dear(self) -> bool:
        return len(self._costs) == _PROOFS and min(self._costs) > _DEAR_SECONDS

    def choose(self, now: float, *, is_idle: bool, has_news: bool) -> float:
        """The floor of the next look: the lowest ``claim_order`` to consider, in epoch seconds.

        Args:
            now: the time.
            is_idle: the last look has found nothing.
            has_news: there may be work that lies low, such as urgent jobs.
        """
        if self._is_dear and not self._is_head_due(now, is_idle=is_idle, has_news=has_news):
            self._looks_since_head += 1
            return self._claimed_to - _MARGIN_SECONDS
        self._looks_since_head = 0
        self._head_at = now
        return NO_FLOOR

    def _is_head_due(self, now: float, *, is_idle: bool, has_news: bool) -> bool:
        passed = now - self._head_at
        fair_seconds = self._costs[-1] / _HEAD_SHARE
        if is_idle:
            return passed >= (min(fair_seconds, _HEAD_SECONDS) if has_news else _HEAD_SECONDS)
        if passed < max(_HEAD_SECONDS, fair_seconds):
            return passed >= _LONGEST_HEAD_SECONDS
        is_rarely_claimed = self._looks_since_head < _MANY_A_SECOND * passed
        return is_rarely_claimed or self._looks_since_head >= _LOOKS_A_HEAD or passed >= _LONGEST_HEAD_SECONDS

    def learn(self, floor: float, claims: list[ClaimedJob]) -> None:
        """Take in what a look from ``floor`` has found: at least one job."""
        if floor != NO_FLOOR:
            self._claimed_to = max(self._claimed_to, claims[-1].claim_order)
            return
        # Down, too: after a look that found only urgent jobs the others come when those are done.
        self._claimed_to = claims[-1].claim_order
        self._costs.append(min(claim.claim_seconds for claim in claims) - len(claims) * _SECONDS_PER_JOB)
