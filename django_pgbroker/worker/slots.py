"""The threads that run handlers, and the claims that wait for one. They run no SQL of the broker."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from django.db import connections

from django_pgbroker.domain.records import ClaimedJob, Verdict


class Slots:
    """A fixed number of daemon threads over one backlog, in claim order.

    Args:
        concurrency: how many handlers run at once.
        execute: runs a claim; must not raise.
        deliver: takes the verdict; called in the slot's thread.
    """

    def __init__(
        self, concurrency: int, execute: Callable[[ClaimedJob], Verdict], deliver: Callable[[Verdict], None]
    ) -> None:
        self._execute = execute
        self._deliver = deliver
        self._backlog: deque[ClaimedJob] = deque()
        self._bell: SimpleQueue[bool] = SimpleQueue()
        self._running: list[ClaimedJob | None] = [None] * concurrency
        self._threads = [
            threading.Thread(target=self._work, args=(slot,), name=f"pgbroker-slot-{slot}", daemon=True)
            for slot in range(concurrency)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def give(self, claims: Sequence[ClaimedJob]) -> None:
        """Add claims to the backlog."""
        self._backlog.extend(claims)
        # A slot that is busy will find the backlog by itself; a bell too many only makes one look in vain.
        for _ in range(min(len(claims), len(self._threads))):
            self._bell.put(True)

    def take_back(self) -> list[ClaimedJob]:
        """Empty the backlog: these claims have not begun and never will here."""
        claims = []
        while self._backlog:
            try:
                claims.append(self._backlog.pop())
            except IndexError:
                break
        return claims

    @property
    def backlog_size(self) -> int:
        """Claims that wait for a slot."""
        return len(self._backlog)

    def running_ids(self) -> set[int]:
        """The jobs whose handlers run at this moment."""
        return {claim.id for claim in self._running.copy() if claim is not None}

    def close(self, timeout_seconds: float) -> None:
        """Ask the threads to end when the backlog is empty, and wait for idle ones to close their connections."""
        until = time.monotonic() + timeout_seconds
        for _ in self._threads:
            self._bell.put(False)
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))

    def _work(self, slot: int) -> None:
        backlog, running = self._backlog, self._running
        while True:
            try:
                claim = backlog.popleft()
            except IndexError:
                if self._bell.get():
                    continue
                connections.close_all()
                return
            running[slot] = claim
            verdict = self._execute(claim)
            running[slot] = None
            self._deliver(verdict)
