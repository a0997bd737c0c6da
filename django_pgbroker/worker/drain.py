"""How a worker ends: what has not begun goes back, what runs may finish for a while, the rest is interrupted."""

import time
from collections.abc import Callable, Collection

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.verdicts import interrupt, release
from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.worker.holdings import Holdings
from django_pgbroker.worker.lease_keeper import LeaseKeeper
from django_pgbroker.worker.pools.pool import Pool
from django_pgbroker.worker.pools.pools import Pools

#: Longer than this after the drain's end nothing waits for a row or a database: the lease brings the job back.
_LAST_SECONDS = 2.0


class Drain:
    """The end of one worker, from the first request to stop. Asked by the worker's main thread.

    Args:
        stopping: how urgently it is asked to stop.
        holdings: what it holds.
        pools: its handlers.
        keeper: of its leases.
        seconds: how long handlers may go on.
        most_interruptions: how often a job may be interrupted before it is a dead letter; None is without limit.
    """

    def __init__(
        self,
        stopping: Stopping,
        holdings: Holdings,
        pools: Pools,
        keeper: LeaseKeeper,
        *,
        seconds: float,
        most_interruptions: Callable[[ClaimedJob], int | None],
    ) -> None:
        self._stopping = stopping
        self._holdings = holdings
        self._pools = pools
        self._keeper = keeper
        self._seconds = seconds
        self._most_interruptions = most_interruptions
        self._until: float | None = None
        #: Whether jobs were left to their leases.
        self.has_left_something = False

    @property
    def seconds_left(self) -> float | None:
        """How long what runs may still go on; None while nothing drains."""
        return None if self._until is None else max(self._until - time.monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        """Whether the worker must go, whatever it still holds."""
        return self._stopping.abort.is_set() or self.seconds_left == 0.0

    @property
    def is_long_over(self) -> bool:
        """Whether there is no more time to hand anything back."""
        return self._until is not None and time.monotonic() >= self._until + _LAST_SECONDS

    def step(self, *, is_busy: bool, until: float | None = None) -> None:
        """Do what is due; called again and again until nothing is held.

        Args:
            is_busy: whether the last turn found a row that somebody holds.
            until: an earlier end, in monotonic seconds.
        """
        if self._until is None:
            self._begin(until)
        hand_back_waiting(self._pools, self._holdings)
        now = time.monotonic()
        ends = [self._until, until, now if self._stopping.abort.is_set() else None]
        self._until = min(end for end in ends if end is not None)
        if self._stopping.abort.is_set():
            self._interrupt_running("the worker was stopped at once")
        elif now >= self._until:
            self._interrupt_running("the worker had to stop before the job was done")
        if is_busy and self.is_long_over:
            self.leave_behind("its row is locked; the lease brings it back")

    def _begin(self, until: float | None) -> None:
        now = time.monotonic()
        self._until = now + self._seconds if until is None else min(now + self._seconds, until)
        seconds = max(self._until - now, 0.0)
        telemetry.info("worker.draining", f"what runs may finish within {seconds:.3g} s", held=len(self._holdings))
        self._keeper.beat_now()

    def _interrupt_running(self, reason: str) -> None:
        running = self._holdings.unjudged()
        for claim in running:
            telemetry.warning("job.interrupted", reason, job=claim.id, token=claim.lease_token)
        self._holdings.interrupt([interrupt(claim, reason, self._most_interruptions(claim)) for claim in running])

    def leave_behind(self, reason: str) -> None:
        """Let go of everything; the leases bring the jobs back."""
        self.has_left_something = self.has_left_something or bool(self._holdings.claims)
        for claim in self._holdings.claims:
            telemetry.warning("job.left_behind", reason, job=claim.id, token=claim.lease_token)
        self._holdings.clear()


def hand_back_waiting(pools: Pools | Pool, holdings: Holdings) -> None:
    """Release the claims that wait for a place."""
    holdings.accept([release(claim) for claim in pools.take_back()])


def hand_back_queues(pools: Pools, holdings: Holdings, queue_ids: Collection[int]) -> None:
    """Release the claims of these queues that wait for a place; the others go on waiting, in their order."""
    for pool in pools:
        waiting = pool.take_back()
        holdings.accept([release(claim) for claim in waiting if claim.queue_id in queue_ids])
        pool.give([claim for claim in reversed(waiting) if claim.queue_id not in queue_ids])
