"""All pools of one worker, asked as one. Used by the worker's main thread, its lease keeper and its overseer."""

import time
from collections.abc import Iterator, Mapping

from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import Stop
from django_pgbroker.worker.pools.pool import Pool, Running


class Pools:
    """The pools by their kind.

    Args:
        pools: at least one.
    """

    def __init__(self, pools: Mapping[ExecutorKind, Pool]) -> None:
        self._pools = pools

    def __getitem__(self, kind: ExecutorKind) -> Pool:
        """The pool of this kind."""
        return self._pools[kind]

    def __iter__(self) -> Iterator[Pool]:
        """Each pool."""
        return iter(self._pools.values())

    def start(self) -> None:
        """Make all ready to run claims."""
        for pool in self:
            pool.start()

    def take_back(self) -> list[ClaimedJob]:
        """Empty all backlogs: these claims have not begun and never will here."""
        return [claim for pool in self for claim in pool.take_back()]

    def running(self) -> list[Running]:
        """The handlers that run at this moment."""
        return [running for pool in self for running in pool.running()]

    def running_ids(self) -> set[int]:
        """The jobs whose handlers run at this moment."""
        return set().union(*(pool.running_ids() for pool in self))

    @property
    def capacity(self) -> int:
        """How many handlers run at once at most."""
        return sum(pool.capacity for pool in self)

    @property
    def hung_count(self) -> int:
        """Abandoned handlers that have not ended."""
        return sum(pool.hung_count for pool in self)

    def interrupt(self, lease_token: int, stop: Stop, *, is_last_call: bool) -> None:
        """Have a handler end, wherever it runs."""
        for pool in self:
            pool.interrupt(lease_token, stop, is_last_call=is_last_call)

    def abandon(self, lease_token: int) -> bool:
        """Give a handler up, wherever it runs; whether the verdict is the caller's to deliver."""
        return any(pool.abandon(lease_token) for pool in self)

    def close(self, timeout_seconds: float) -> None:
        """No claims will come any more: wait so long for idle places to end."""
        until = time.monotonic() + timeout_seconds
        for pool in self:
            pool.close(max(until - time.monotonic(), 0.0))
