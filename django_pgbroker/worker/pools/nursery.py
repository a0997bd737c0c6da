"""Keep as many child processes as there should be: start them, end them, and pause where they die of nothing."""

import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.runtime.backoff_timer import BackoffTimer
from django_pgbroker.worker.pools.child_process import ChildProcess

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0

#: A child that is killed is gone within this time, but for one that waits for a disk.
_DEATH_SECONDS = 1.0


class Nursery:
    """The children of one pool; changed by the thread of the pool alone.

    Args:
        capacity: how many there should be.
        brief: what each is told first.
        on_start: told of each new one.
    """

    def __init__(self, capacity: int, brief: bytes, on_start: Callable[[ChildProcess], None]) -> None:
        self.capacity = capacity
        self._brief = brief
        self._on_start = on_start
        self._pause = BackoffTimer(_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS)
        self._start_at = 0.0
        self.children: list[ChildProcess] = []
        #: Set when the first one is ready, or has failed.
        self.is_first_over = threading.Event()

    def replenish(self) -> None:
        """Start what is missing, unless the last ones have failed a moment ago."""
        while len(self.children) < self.capacity and time.monotonic() >= self._start_at:
            try:
                child = ChildProcess(self._brief)
            except OSError as error:
                self._note_failure(str(error))
                return
            self.children.append(child)
            telemetry.debug("child.started", "it gets ready", pid=child.process.pid)
            self._on_start(child)

    def note_ready(self, child: ChildProcess) -> None:
        """It can run jobs."""
        child.is_ready = True
        self.is_first_over.set()

    def note_verdict(self, child: ChildProcess) -> None:
        """It has run a job."""
        if not child.has_run:
            child.has_run = True
            self._pause.reset()

    def remove(self, child: ChildProcess) -> None:
        """A child has closed its end, or is dead: see to it that nothing is left of it."""
        self.children.remove(child)
        child.connection.close()
        if child.is_retired:
            child.process.poll()
            return
        child.kill()
        with suppress(subprocess.TimeoutExpired):
            child.process.wait(_DEATH_SECONDS)

    def explain(self, child: ChildProcess, claim: ClaimedJob | None) -> None:
        """Tell why a child has died, and wait before the next start where no job was the cause.

        Args:
            child: that was removed.
            claim: of the job that ran in it.
        """
        if not child.is_ready:
            self._note_failure(child.failure or f"a child process ended {child.describe_end()} before it was ready")
        elif not child.is_retired and child.doomed_for is None:
            if claim is None and not child.has_run:
                self._start_at = time.monotonic() + self._pause.next_seconds()
            job = {"job": claim.id} if claim else {}
            message = f"it ended {child.describe_end()}; another one takes its place"
            telemetry.warning("child.died", message, pid=child.process.pid, **job)

    def _note_failure(self, reason: str) -> None:
        seconds = self._pause.next_seconds()
        self._start_at = time.monotonic() + seconds
        message = f"{reason}; again in {seconds:.1f} s, and what waits goes back meanwhile"
        telemetry.error("child.failed_to_start", message)
        self.is_first_over.set()

    def dismiss(self, until: float) -> None:
        """Let all go, whatever they do: those that have not gone at this monotonic time are killed."""
        for child in self.children:
            child.hang_up()
        for child in self.children:
            try:
                child.process.wait(max(until - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                child.kill()
                with suppress(subprocess.TimeoutExpired):
                    child.process.wait(_DEATH_SECONDS)
            child.connection.close()
        self.children.clear()
