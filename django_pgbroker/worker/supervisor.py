"""Several worker processes under one that starts, restarts and ends them. For ``pgbroker_worker --processes``.

It opens no connection and forks nothing: each worker is a fresh interpreter.
"""

import logging
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from django_pgbroker import telemetry
from django_pgbroker.runtime.backoff_timer import BackoffTimer
from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.worker.leash import ABORT, DRAIN
from django_pgbroker.worker.recycling import RECYCLED

MOST_PROCESSES = 64

#: The exit status of a worker process that an operator has ordered away: nobody starts it again.
ORDERED_AWAY = 3

#: A worker process that has lived for so long was well: the next start comes soon again.
_SETTLED_SECONDS = 60.0

_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 30.0


@dataclass
class Post:
    """The place of one worker process, from one to the next.

    Args:
        number: from 1.
    """

    number: int
    process: subprocess.Popen[bytes] | None = None
    leash: int = -1
    started_at: float = 0.0
    due_at: float = 0.0
    status: int = 0
    is_over: bool = False
    backoff: BackoffTimer = field(default_factory=lambda: BackoffTimer(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS))


class Supervisor:
    """Keeps a number of worker processes running until it is told to stop, or until all have done their work.

    Args:
        processes: how many.
        command: the command line of the process with this number, from 1, which has the reading end of its leash at
            this file descriptor.
        until_empty: a process that ends with status 0 has done its work.
    """

    def __init__(
        self, processes: int, command: Callable[[int, int], Sequence[str]], *, until_empty: bool = False
    ) -> None:
        self.stopping = Stopping()
        self._command = command
        self._until_empty = until_empty
        self._posts = [Post(number) for number in range(1, processes + 1)]
        self._told: set[bytes] = set()

    def run(self) -> int:
        """Run until the last process has ended. Only in a main thread.

        Returns:
            The exit status: 0 if every process ended well or was ordered away, else the worst of their last ones, which
            is 128 and the number of the signal for one that was killed.

        Raises:
            ValueError: not called in the main thread.
        """
        with self.stopping.on_signals(), _woken_by_signals() as woken:
            telemetry.info("supervisor.started", "worker processes are started", processes=len(self._posts))
            while self._is_busy():
                self._fill_posts()
                _wait(woken, self._seconds_to_next_start())
                self._pass_on_orders()
                self._reap()
        status = max(post.status for post in self._posts)
        telemetry.info("supervisor.stopped", "all worker processes have ended", status=status)
        return status

    def _is_busy(self) -> bool:
        is_draining = self.stopping.drain.is_set()
        return any(post.process or not (post.is_over or is_draining) for post in self._posts)

    def _vacant_posts(self) -> list[Post]:
        if self.stopping.drain.is_set():
            return []
        return [post for post in self._posts if not (post.process or post.is_over)]

    def _seconds_to_next_start(self) -> float | None:
        vacant = self._vacant_posts()
        return max(0.0, min(post.due_at for post in vacant) - time.monotonic()) if vacant else None

    # -------------------------------------------------------------------------------------------- start

    def _fill_posts(self) -> None:
        for post in self._vacant_posts():
            if post.due_at <= time.monotonic():
                self._start(post)

    def _start(self, post: Post) -> None:
        post.started_at = time.monotonic()
        try:
            reader, writer = os.pipe()
        except OSError as error:
            self._start_again(post, f"a worker process could not be started: {error}", status=1)
            return
        try:
            # a group of its own: Ctrl-C at a terminal is for the supervisor alone
            post.process = subprocess.Popen(  # noqa: S603 - the command line of this process
                self._command(post.number, reader), stdin=subprocess.DEVNULL, pass_fds=[reader], process_group=0
            )
            post.leash = writer
        except OSError as error:
            os.close(writer)
            self._start_again(post, f"a worker process could not be started: {error}", status=1)
        finally:
            os.close(reader)

    def _start_again(self, post: Post, what: str, status: int) -> None:
        now = time.monotonic()
        if now - post.started_at >= _SETTLED_SECONDS:
            post.backoff.reset()
        wait = post.backoff.next_seconds()
        post.status, post.due_at = status, now + wait
        level = logging.WARNING if status else logging.INFO
        telemetry.emit(
            level, "supervisor.worker_restarted", f"{what}; another one is started in {wait:.1f} s", process=post.number
        )

    # -------------------------------------------------------------------------------------------- orders and ends

    def _pass_on_orders(self) -> None:
        for order, flag in ((DRAIN, self.stopping.drain), (ABORT, self.stopping.abort)):
            if flag.is_set() and order not in self._told:
                self._told.add(order)
                for post in self._posts:
                    if post.process:
                        with suppress(BrokenPipeError):
                            os.write(post.leash, order)

    def _reap(self) -> None:
        for post in self._posts:
            if post.process and (code := post.process.poll()) is not None:
                os.close(post.leash)
                post.process = None
                self._note_end(post, code)

    def _note_end(self, post: Post, code: int) -> None:
        if code == ORDERED_AWAY:
            post.status, post.is_over = 0, True
        elif code == RECYCLED:
            # it did its work; where all are to stop, no other one follows
            post.status, post.due_at, post.is_over = 0, 0.0, self.stopping.drain.is_set()
            what = "a worker process has done its part" if post.is_over else "a fresh process takes its place"
            telemetry.info("supervisor.worker_recycled", what, process=post.number)
        elif self.stopping.drain.is_set():
            # a signal to all processes may come before this one was ready to handle it: it held nothing
            post.status, post.is_over = 0 if code == -signal.SIGTERM else _exit_status(code), True
        elif code == 0 and self._until_empty:
            post.status, post.is_over = 0, True
        else:
            self._start_again(post, f"a worker process ended with status {code}", _exit_status(code))


def _exit_status(code: int) -> int:
    return code if code >= 0 else 128 - code


@contextmanager
def _woken_by_signals() -> Iterator[int]:
    """A file descriptor that becomes readable with every signal, one that comes just before the wait included."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    previous_writer = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # with its default handler the end of a process would wake nobody
    previous_handler = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    try:
        yield reader
    finally:
        signal.signal(signal.SIGCHLD, previous_handler)
        signal.set_wakeup_fd(previous_writer)
        os.close(reader)
        os.close(writer)


def _wait(woken: int, seconds: float | None) -> None:
    select.select([woken], [], [], seconds)
    with suppress(BlockingIOError):
        while os.read(woken, 4096):
            pass
