"""The threads in which jobs of an event loop run their sync code: Django's ``a…`` methods and ``sync_to_async``.

asgiref would run all of it in one thread of the process. Here jobs share a few, each job in the same one throughout.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

from django.db import connections

from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.worker.forks import end_fork
from django_pgbroker.worker.hygiene import OpenTransaction, drop_dead_connections, settle_connections
from django_pgbroker.worker.interruption import Interruptible
from django_pgbroker.worker.pools.statements import StatementCanceller

#: The lease token of the job that this code belongs to; 0 is none.
job_token: ContextVar[int] = ContextVar("pgbroker_job_token", default=0)

_ENDED = Stop(StopKind.CANCELLED, "its job has ended")


class _Call(NamedTuple):
    token: int
    future: Future[Any]
    function: Callable[[], Any]


class _Seat:
    """What one thread does now, for others to see; a thread that hangs keeps its own."""

    def __init__(self) -> None:
        self.region = Interruptible()
        self.token = 0
        self.is_touched = False


class _SyncThread:
    """One daemon thread after the other over one queue of calls.

    Args:
        keeps_connections: between calls; else they are closed after each.
    """

    def __init__(self, name: str, *, keeps_connections: bool) -> None:
        self.name = name
        self.load = 0
        self._keeps_connections = keeps_connections
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self.seat: _Seat | None = None
        self._thread: threading.Thread | None = None
        self._left: list[threading.Thread] = []

    @property
    def hung_count(self) -> int:
        """Threads before the present one that are still in a call."""
        self._left = [thread for thread in self._left if thread.is_alive()]
        return len(self._left)

    def submit(self, call: _Call) -> None:
        """Run it after those before it."""
        self._calls.put(call)
        if self.seat is None:
            self.begin_anew()

    def end_call(self) -> None:
        """One that was counted as load is over."""
        self.load -= 1

    def begin_anew(self) -> None:
        """Another thread takes what waits; the one before, if any, ends with the call that it is in."""
        if self._thread is not None:
            self._left.append(self._thread)
        self.seat = _Seat()
        self._thread = threading.Thread(target=self._work, args=(self.seat,), name=self.name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread when it is idle."""
        if self.seat is not None:
            self._calls.put(None)

    def join(self, timeout_seconds: float) -> None:
        """Wait for the thread to end."""
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    def _work(self, seat: _Seat) -> None:
        while seat is self.seat and (call := self._calls.get()):
            if call.future.set_running_or_notify_cancel():
                self._perform(call, seat)
        connections.close_all()

    def _perform(self, call: _Call, seat: _Seat) -> None:
        seat.is_touched = False
        seat.token = call.token
        try:
            value = self._call(call, seat)
        except BaseException as error:
            seat.token = 0
            call.future.set_exception(error)
        else:
            seat.token = 0
            call.future.set_result(value)

    def _call(self, call: _Call, seat: _Seat) -> Any:
        drop_dead_connections()
        process_id = os.getpid()
        try:
            try:
                seat.region.enter()
                value = call.function()
            finally:
                end_fork(process_id)
                seat.region.leave()
        except BaseException:
            self._settle(seat)
            raise
        if aliases := self._settle(seat):
            raise OpenTransaction(
                f"sync code of an async handler returned with an open transaction on {', '.join(aliases)}; it was "
                "rolled back. Other jobs use this connection too: open and end a transaction within one sync function"
            )
        return value

    def _settle(self, seat: _Seat) -> list[str]:
        return settle_connections(closes_all=seat.is_touched or not self._keeps_connections)


class SyncThreads:
    """The threads of one pool.

    Args:
        count: of threads that keep connections; as many more, without, serve ``asyncio.to_thread``.
        statements: ends what their connections wait for.
        is_running: whether the job of a token is: what it left behind after its end has no home any more.
    """

    def __init__(self, count: int, statements: StatementCanceller, is_running: Callable[[int], bool]) -> None:
        self._statements = statements
        self._is_running = is_running
        self._homes = [_SyncThread(f"pgbroker-sync-{each}", keeps_connections=True) for each in range(count)]
        self._others = [_SyncThread(f"pgbroker-loose-{each}", keeps_connections=False) for each in range(count)]
        self._home_of: dict[int, _SyncThread] = {}
        self._callers: set[int] = set()
        #: For thread-sensitive code: a job's calls all go to its home.
        self.sensitive: Executor = _Sensitive(self)
        #: For the rest.
        self.loose: ThreadPoolExecutor = _Loose(self)

    def call_at_home(self, function: Callable[[], Any]) -> Future[Any]:
        """Run it in the thread of the current job, which it gets with its first call."""
        token = job_token.get()
        if (home := self._home_of.get(token)) is None:
            home = min(self._homes, key=lambda thread: thread.load)
            if self._is_running(token):
                self._home_of[token] = home
                home.load += 1
        self._note_caller(token)
        call = _Call(token, Future(), function)
        home.submit(call)
        return call.future

    def call_elsewhere(self, function: Callable[[], Any]) -> Future[Any]:
        """Run it in the thread that has least to do."""
        token = job_token.get()
        thread = min(self._others, key=lambda thread: thread.load)
        thread.load += 1
        self._note_caller(token)
        call = _Call(token, Future(), function)
        call.future.add_done_callback(lambda _: thread.end_call())
        thread.submit(call)
        return call.future

    def _note_caller(self, token: int) -> None:
        if self._is_running(token):
            self._callers.add(token)

    def leave(self, token: int) -> None:
        """The job has ended; a thread that is still in one of its calls is told to stop, and replaced."""
        if token not in self._callers:
            return
        self._callers.discard(token)
        if home := self._home_of.pop(token, None):
            home.load -= 1
        for thread in self._threads_in(token):
            seat = thread.seat
            thread.begin_anew()
            self._throw(seat, token, _ENDED)

    def _threads_in(self, token: int) -> list[_SyncThread]:
        return [each for each in (*self._homes, *self._others) if each.seat is not None and each.seat.token == token]

    def cancel_statements(self, token: int) -> None:
        """End the statements that this job waits for; may take some seconds."""
        for thread in self._threads_in(token):
            if (seat := thread.seat) is not None:
                seat.region.run_inside(partial(self._cancel, seat, token))

    def _cancel(self, seat: _Seat, token: int, thread_id: int) -> None:
        if seat.token == token:
            seat.is_touched = True
            self._statements.cancel(thread_id)

    def throw(self, token: int, stop: Stop) -> None:
        """Raise ``JobStopped`` in what this job runs in threads."""
        for thread in self._threads_in(token):
            self._throw(thread.seat, token, stop)

    def _throw(self, seat: _Seat | None, token: int, stop: Stop) -> None:
        if seat is not None:
            seat.region.throw(stop, is_due=lambda: seat.token == token)

    @property
    def hung_count(self) -> int:
        """Threads that are left in a call of a job that has ended."""
        return sum(thread.hung_count for thread in (*self._homes, *self._others))

    def close(self, timeout_seconds: float) -> None:
        """End the threads as soon as they are idle, and wait so long for them."""
        until = time.monotonic() + timeout_seconds
        for thread in (*self._homes, *self._others):
            thread.close()
        for thread in (*self._homes, *self._others):
            thread.join(max(until - time.monotonic(), 0.0))


class _Sensitive(Executor):
    """The face that asgiref knows."""

    def __init__(self, threads: SyncThreads) -> None:
        self._threads = threads

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it in the thread of the current job."""
        return self._threads.call_at_home(partial(fn, *args, **kwargs))


class _Loose(ThreadPoolExecutor):
    """The face that asyncio insists on; the threads are ours, daemons, so that none keeps the process."""

    def __init__(self, threads: SyncThreads) -> None:
        super().__init__(max_workers=1)
        self._pgbroker_threads = threads

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run it in some thread."""
        return self._pgbroker_threads.call_elsewhere(partial(fn, *args, **kwargs))
