"""The tasks of an event loop that run handlers, and the claims that wait for a place. They run no SQL of the broker."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext

from django_pgbroker import telemetry
from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.stops import Stop
from django_pgbroker.worker.pools.loop_thread import LoopThread
from django_pgbroker.worker.pools.pool import Running
from django_pgbroker.worker.pools.statements import StatementCanceller
from django_pgbroker.worker.pools.sync_threads import SyncThreads, job_token

#: After so many jobs have begun at a stretch the loop attends to those that run.
_MOST_AT_ONCE = 50

#: A loop that has not turned for so long is held up by a handler that does not await.
_BLOCKED_SECONDS = 2.0


class _Entry:
    """A job that runs: its task, which begins a moment after it, and the loop of that task."""

    __slots__ = ("begun_at", "claim", "home", "task")

    def __init__(self, claim: ClaimedJob, home: LoopThread) -> None:
        self.claim = claim
        self.begun_at = time.monotonic()
        self.home = home
        self.task: asyncio.Task[Any] | None = None


class EventLoopPool:
    """A bounded number of tasks over one backlog, in claim order.

    A handler that never awaits holds up all others. When it is given up, a fresh loop in another thread takes what
    comes; the jobs of the old one go on as soon as they can.

    Args:
        capacity: how many handlers run at once.
        sync_threads: how many threads their sync code shares.
        execute: runs a claim as a coroutine; must not raise.
        deliver: takes the verdict; called in the loop.
    """

    kind = ExecutorKind.ASYNC

    def __init__(
        self,
        capacity: int,
        sync_threads: int,
        execute: Callable[[ClaimedJob], Awaitable[Verdict]],
        deliver: Callable[[Verdict], None],
    ) -> None:
        self.capacity = capacity
        self._execute = execute
        self._deliver = deliver
        self._backlog: deque[ClaimedJob] = deque()
        #: What runs, by token. Whoever takes an entry out has the say about this claim: its task, or who abandons it.
        self._running: dict[int, _Entry] = {}
        self._hung: dict[int, _Entry] = {}
        self._statements = StatementCanceller()
        self._threads = SyncThreads(sync_threads, self._statements, lambda token: token in self._running)
        self._sensitive_context = ThreadSensitiveContext()
        SyncToAsync.context_to_thread_executor[self._sensitive_context] = self._threads.sensitive
        self._loops: list[LoopThread] = []
        self._home = self._make_loop()
        self._is_beginning = False
        self._is_told = False

    def _make_loop(self) -> LoopThread:
        home = LoopThread(len(self._loops), self._prepare_context, self._threads.loose)
        self._loops.append(home)
        return home

    def _prepare_context(self) -> None:
        """Have thread-sensitive code of all that runs in this loop go to our threads."""
        SyncToAsync.thread_sensitive_context.set(self._sensitive_context)

    def start(self) -> None:
        """Start the loop."""
        self._statements.start()
        self._home.start()

    def resize(self, capacity: int) -> None:
        """Let more handlers begin, or none until fewer run."""
        self.capacity = capacity
        self._ask()

    # -------------------------------------------------------------------------------------------- claims

    def give(self, claims: Sequence[ClaimedJob]) -> None:
        """Add claims to the backlog."""
        self._backlog.extend(claims)
        self._ask()

    def _ask(self) -> None:
        self._home.call(self._begin, self._home)

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
        """Claims that wait for a place."""
        return len(self._backlog)

    @property
    def hung_count(self) -> int:
        """Abandoned tasks that have not ended, and threads that are still in the sync code of a job that has."""
        return len(self._hung) + self._threads.hung_count

    def running(self) -> list[Running]:
        """The handlers that run at this moment."""
        self._see_to_loop()
        return [Running(entry.claim, entry.begun_at) for entry in self._running.copy().values()]

    def running_ids(self) -> set[int]:
        """The jobs whose handlers run at this moment."""
        return {entry.claim.id for entry in self._running.copy().values()}

    # -------------------------------------------------------------------------------------------- stops

    def interrupt(self, lease_token: int, stop: Stop, *, is_last_call: bool) -> None:
        """Cancel the statement and the task; at the last call raise ``JobStopped`` in its sync code too."""
        if (entry := self._running.get(lease_token)) is None:
            return
        if is_last_call:
            self._threads.throw(lease_token, stop)
        self._threads.cancel_statements(lease_token)
        entry.home.call(self._cancel, entry)

    def _cancel(self, entry: _Entry) -> None:
        if entry.task and self._running.get(entry.claim.lease_token) is entry:
            entry.task.cancel()

    def abandon(self, lease_token: int) -> bool:
        """Leave the task to itself; another one may begin, in another loop where it holds this one up."""
        if (entry := self._running.pop(lease_token, None)) is None:
            return False
        self._hung[lease_token] = entry
        self._see_to_loop()
        self._ask()
        return True

    def _see_to_loop(self) -> None:
        """Tell of a handler that holds up the loop, once; where it has been given up, go on in another loop."""
        home = self._home
        seconds = home.silent_seconds
        if seconds < _BLOCKED_SECONDS:
            self._is_told = False
            return
        task = home.current_task
        entries = [*self._running.copy().values(), *self._hung.copy().values()]
        if (entry := next((each for each in entries if each.task is task), None)) is None:
            return
        if not self._is_told:
            self._is_told = True
            message = f"a handler has not awaited for {seconds:.1f} s and holds up all others: use another executor"
            telemetry.warning("async.blocked", message, job=entry.claim.id, token=entry.claim.lease_token)
        if entry.claim.lease_token in self._hung:
            self._home = self._make_loop()
            self._is_beginning = self._is_told = False
            self._home.start()
            self._ask()

    def close(self, timeout_seconds: float) -> None:
        """Cancel what still runs, and wait for the loop and for idle threads to end."""
        until = time.monotonic() + timeout_seconds
        for home in self._loops:
            home.close(max(until - time.monotonic(), 0.0))
        self._threads.close(max(until - time.monotonic(), 0.0))
        self._statements.stop()

    # -------------------------------------------------------------------------------------------- in the loop

    def _begin(self, home: LoopThread) -> None:
        """Begin what there is room for. A handler that does not wait for anything ends within this call."""
        if home is not self._home:
            return
        self._is_beginning = True
        for _ in range(_MOST_AT_ONCE):
            if len(self._running) >= self.capacity:
                break
            try:
                claim = self._backlog.popleft()
            except IndexError:
                break
            entry = self._running[claim.lease_token] = _Entry(claim, home)
            asyncio.Task(self._work(entry), loop=home.loop, context=home.context.copy(), eager_start=True)
        else:
            home.loop.call_soon(self._begin, home, context=home.context)
            return
        self._is_beginning = False

    async def _work(self, entry: _Entry) -> None:
        entry.task = asyncio.current_task()
        token = entry.claim.lease_token
        job_token.set(token)
        verdict = await self._execute(entry.claim)
        is_heard = self._running.pop(token, None) is not None
        self._threads.leave(token)
        if not is_heard:
            self._hung.pop(token, None)
        else:
            self._deliver(verdict)
        if not self._is_beginning:
            self._is_beginning = True
            self._ask()
