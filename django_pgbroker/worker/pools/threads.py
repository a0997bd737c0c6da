"""The threads that run handlers, and the claims that wait for one. They run no SQL of the broker."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from django.db import connections

from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.stops import Stop
from django_pgbroker.worker.interruption import Interruptible
from django_pgbroker.worker.pools.pool import Running
from django_pgbroker.worker.pools.statements import StatementCanceller


class _Slot:
    """One place of the pool; it keeps its number, and gets a fresh thread when a handler hangs in the old one."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.region = Interruptible()


class ThreadPool:
    """A number of daemon threads over one backlog, in claim order.

    Args:
        capacity: how many handlers run at once.
        execute: runs a claim, throwing into the region as long as its handler runs is allowed; must not raise.
        deliver: takes the verdict; called in the thread of the handler.
    """

    kind = ExecutorKind.THREAD

    def __init__(
        self,
        capacity: int,
        execute: Callable[[ClaimedJob, Interruptible], Verdict],
        deliver: Callable[[Verdict], None],
    ) -> None:
        self.capacity = capacity
        self._execute = execute
        self._deliver = deliver
        self._backlog: deque[ClaimedJob] = deque()
        self._bell: SimpleQueue[bool] = SimpleQueue()
        #: What runs, by token. Whoever takes an entry out has the say about this claim: its thread, or who abandons it.
        self._running: dict[int, tuple[ClaimedJob, float, _Slot]] = {}
        #: By the numbers of their slots.
        self._threads = {number: self._make_thread(number) for number in range(capacity)}
        #: Held while threads come and go by ``resize``.
        self._sizing = threading.Lock()
        #: So many threads are to end, whichever come first: those that are idle, and those whose handler has ended.
        self._surplus = 0
        self._abandoned: list[threading.Thread] = []
        self._statements = StatementCanceller()

    def _make_thread(self, number: int) -> threading.Thread:
        return threading.Thread(target=self._work, args=(_Slot(number),), name=f"pgbroker-slot-{number}", daemon=True)

    def start(self) -> None:
        """Start the threads."""
        self._statements.start()
        for thread in self._threads.values():
            thread.start()

    def resize(self, capacity: int) -> None:
        """Start threads, or have some end as soon as they have nothing to do; call it in one thread only."""
        with self._sizing:
            change, self.capacity = capacity - self.capacity, capacity
            kept = min(self._surplus, max(change, 0))
            self._surplus += max(-change, 0) - kept
            numbers = set(range(capacity + self._surplus)) - self._threads.keys()
            fresh = {number: self._make_thread(number) for number in sorted(numbers)[: max(change - kept, 0)]}
            self._threads |= fresh
            # one for each that is to go: no bell that was meant for a claim is missed then
            bells = self._surplus
        for thread in fresh.values():
            thread.start()
        for _ in range(bells):
            self._bell.put(True)

    def _may_leave(self, number: int) -> bool:
        """Whether this thread is one too many, and then it ends now."""
        with self._sizing:
            if not self._surplus:
                return False
            self._surplus -= 1
            del self._threads[number]
            return True

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

    @property
    def hung_count(self) -> int:
        """Abandoned threads that have not ended."""
        self._abandoned = [thread for thread in self._abandoned if thread.is_alive()]
        return len(self._abandoned)

    def running(self) -> list[Running]:
        """The handlers that run at this moment."""
        return [Running(claim, begun_at) for claim, begun_at, _ in self._running.copy().values()]

    def running_ids(self) -> set[int]:
        """The jobs whose handlers run at this moment."""
        return {claim.id for claim, _, _ in self._running.copy().values()}

    def interrupt(self, lease_token: int, stop: Stop, *, is_last_call: bool) -> None:
        """End the statement that the handler waits for; at the last call raise ``JobStopped`` in its thread too."""
        if (entry := self._running.get(lease_token)) is None:
            return
        region = entry[2].region
        if is_last_call:
            region.throw(stop)
        self._statements.cancel_inside(region)

    def abandon(self, lease_token: int) -> bool:
        """Leave the handler to itself; its slot gets another thread."""
        if (entry := self._running.pop(lease_token, None)) is None:
            return False
        number = entry[2].number
        self._abandoned.append(self._threads[number])
        self._threads[number] = self._make_thread(number)
        self._threads[number].start()
        return True

    def close(self, timeout_seconds: float) -> None:
        """Ask the threads to end when the backlog is empty, and wait for idle ones to close their connections."""
        until = time.monotonic() + timeout_seconds
        threads = list(self._threads.values())
        for _ in threads:
            self._bell.put(False)
        for thread in threads:
            thread.join(max(until - time.monotonic(), 0.0))
        self._statements.stop()

    def _work(self, slot: _Slot) -> None:
        backlog, running, region = self._backlog, self._running, slot.region
        while not (self._surplus and self._may_leave(slot.number)):
            try:
                claim = backlog.popleft()
            except IndexError:
                if self._bell.get():
                    continue
                break
            token = claim.lease_token
            running[token] = (claim, time.monotonic(), slot)
            verdict = self._execute(claim, region)
            if running.pop(token, None) is None:
                break
            self._deliver(verdict)
        connections.close_all()
