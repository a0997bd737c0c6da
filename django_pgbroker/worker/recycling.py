"""When a worker process makes room for a fresh one: jobs, memory or hanging handlers are too many. Asked by Worker."""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from django_pgbroker import telemetry

#: The exit status of a worker process that asks for a fresh one in its place, at once.
RECYCLED = 4

#: Memory is looked at this often at most.
_GLANCE_SECONDS = 1.0

_MEBIBYTE = 1_048_576


class Recycling:
    """Counts what this process has done, and decides once that it is enough.

    Args:
        max_jobs: after so many handlers; None for no limit.
        max_memory_mb: resident memory in MiB above which it is enough; None for no limit.
        most_hung: so many handlers that were given up and have not ended are too many.
        measure: answers the resident bytes; by default those of this process.
    """

    def __init__(
        self,
        max_jobs: int | None,
        max_memory_mb: int | None,
        most_hung: int,
        measure: Callable[[], int] | None = None,
    ) -> None:
        self._measure = measure or measure_resident_bytes
        self._max_jobs = max_jobs
        self._max_memory = None if max_memory_mb is None else max_memory_mb * _MEBIBYTE
        self._most_hung = most_hung
        self._lock = threading.Lock()
        self._begun = 0
        self._ended = 0
        self._looked_at = 0.0
        #: Why this process is to be replaced, once that is decided.
        self.reason: str | None = None

    @property
    def is_spent(self) -> bool:
        """Whether as many handlers as are allowed have begun: no claim is worth it any more."""
        return self._max_jobs is not None and self._begun >= self._max_jobs

    def may_begin(self) -> bool:
        """Count one more handler that is about to begin; False when it must not, for it would be one too many."""
        if self._max_jobs is None:
            return True
        with self._lock:
            if self._begun >= self._max_jobs:
                return False
            self._begun += 1
            return True

    def note_ended(self, count: int) -> None:
        """So many handlers have ended and their verdicts are committed."""
        self._ended += count

    def check(self, hung_count: int, *, holds_nothing: bool) -> bool:
        """Whether it has become enough just now; told once.

        Args:
            hung_count: handlers that were given up and have not ended.
            holds_nothing: whether no claim is left in this process, and no verdict waits.
        """
        if self.reason is not None:
            return False
        if hung_count >= self._most_hung:
            message = "too many handlers that were given up go on: a fresh process is needed"
            telemetry.error("worker.too_many_hung", message, hung=hung_count)
            self.reason = f"{hung_count} handlers hang"
        elif self.is_spent and holds_nothing:
            self.reason = f"{self._begun} jobs done"
        elif self._max_memory is not None and self._ended:
            self.reason = self._check_memory()
        if self.reason is None:
            return False
        telemetry.info("worker.recycled", f"{self.reason}: this process ends, for a fresh one", jobs=self._ended)
        return True

    def _check_memory(self) -> str | None:
        """Only after a job: a limit below what the bare process needs would else make it end again and again."""
        now = time.monotonic()
        if now - self._looked_at < _GLANCE_SECONDS or self._max_memory is None:
            return None
        self._looked_at = now
        used = self._measure()
        return f"{used // _MEBIBYTE} MiB of memory used" if used > self._max_memory else None


def measure_resident_bytes() -> int:
    """The memory that this process occupies now; where the system does not say, the most that it ever did."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
