"""A page of memory that a worker and one of its child processes share: what runs, since when, and whether to stop.

Each number is written by one side and read by the other, eight aligned bytes at once; nothing is ever waited for.
"""

import math
import mmap
import os
import tempfile
import time
from typing import NamedTuple

from django_pgbroker.domain.stops import Stop, StopKind

_SIZE = 1024
_REASON = slice(128, 640)
_KINDS = list(StopKind)

#: Positions of the whole numbers, in bytes 0 to 63, and of the times, in bytes 64 to 127.
_RUNNING, _STOPPED, _KIND, _CALLS, _REASON_SIZE = range(5)
_BEGUN_AT, _HEARD_AT, _CLOCK_OFFSET = range(3)


class Occupation(NamedTuple):
    """What a child runs: the token of the claim, and since when, in monotonic seconds."""

    token: int
    begun_at: float


def make_page_file() -> int:
    """A file descriptor of a new, empty page; it has no name."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pgbroker-child")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, _SIZE)
    return descriptor


class ChildPage:
    """The page behind a file descriptor, which may be closed after.

    Args:
        descriptor: as ``make_page_file`` made it.
    """

    def __init__(self, descriptor: int) -> None:
        self._bytes = memoryview(mmap.mmap(descriptor, _SIZE))
        self._numbers = self._bytes[:64].cast("q")
        self._times = self._bytes[64:128].cast("d")

    # -------------------------------------------------------------------------------------------- by the child

    def begin(self, token: int) -> None:
        """A handler is about to run."""
        self._times[_BEGUN_AT] = self._times[_HEARD_AT] = time.monotonic()
        self._numbers[_RUNNING] = token

    def end(self) -> None:
        """Its verdict is on the way: whatever happens now, it will arrive."""
        self._numbers[_RUNNING] = 0

    def beat(self) -> None:
        """The handler gets on."""
        self._times[_HEARD_AT] = time.monotonic()

    def find_stop(self, token: int) -> Stop | None:
        """Why the handler of this claim should end, if it should."""
        if self._numbers[_STOPPED] != token:
            return None
        reason = bytes(self._bytes[_REASON])[: self._numbers[_REASON_SIZE]]
        return Stop(_KINDS[self._numbers[_KIND]], reason.decode(errors="replace"))

    @property
    def calls(self) -> int:
        """How often the worker has called for an end, of whatever claim."""
        return self._numbers[_CALLS]

    def now(self) -> float | None:
        """The time of the database in epoch seconds, where the worker knows it."""
        offset = self._times[_CLOCK_OFFSET]
        return None if math.isnan(offset) else offset + time.monotonic()

    # -------------------------------------------------------------------------------------------- by the worker

    @property
    def occupation(self) -> Occupation | None:
        """What runs at this moment."""
        token = self._numbers[_RUNNING]
        return Occupation(token, self._times[_BEGUN_AT]) if token else None

    @property
    def heard_at(self) -> float:
        """When the handler was heard of last, in monotonic seconds."""
        return self._times[_HEARD_AT]

    def tell(self, token: int, stop: Stop) -> None:
        """Have the handler of this claim end; it reads it when it asks."""
        reason = stop.reason.encode()[: _REASON.stop - _REASON.start]
        self._bytes[_REASON.start : _REASON.start + len(reason)] = reason
        self._numbers[_REASON_SIZE] = len(reason)
        self._numbers[_KIND] = _KINDS.index(stop.kind)
        self._numbers[_STOPPED] = token

    def call(self) -> None:
        """A signal follows: the handler is not only to be told, but to be interrupted."""
        self._numbers[_CALLS] += 1

    def set_clock(self, epoch_seconds: float | None) -> None:
        """The time of the database now."""
        self._times[_CLOCK_OFFSET] = math.nan if epoch_seconds is None else epoch_seconds - time.monotonic()
