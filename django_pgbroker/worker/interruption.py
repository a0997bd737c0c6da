"""Throw an exception into a thread while a handler runs in it, and never at any other moment.

CPython delivers such an exception between two bytecodes: a loop in Python ends, one in C goes on until it returns.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Protocol

from django_pgbroker.domain.stops import JobStopped, Stop


class Region(Protocol):
    """Where a handler runs: told by the executor, so that nothing is thrown at any other moment."""

    def enter(self) -> None:
        """The handler begins."""

    def leave(self) -> None:
        """The handler has ended: from here on nothing is thrown."""


class Interruptible:
    """The part of one thread's life in which a handler runs; entered and left by that thread, thrown into by others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread_id: int | None = None
        self._is_thrown = False

    @property
    def is_entered(self) -> bool:
        """Whether the handler runs, as far as a look without the lock can say; for a signal handler of this thread."""
        return self._thread_id is not None

    def enter(self) -> None:
        """The handler begins."""
        with self._lock:
            self._thread_id = threading.get_ident()

    def leave(self) -> None:
        """The handler has ended: what was thrown and has not arrived is withdrawn."""
        while True:
            try:
                with self._lock:
                    if self._is_thrown:
                        _set_exception(threading.get_ident(), None)
                    self._thread_id, self._is_thrown = None, False
            except JobStopped:
                continue
            return

    def throw(self, stop: Stop, is_due: Callable[[], bool] = lambda: True) -> bool:
        """Have ``JobStopped`` raised in the handler as soon as its thread runs Python; False when none runs.

        Args:
            stop: why.
            is_due: asked while the handler cannot leave: whether it is still the one that is meant.
        """
        with self._lock:
            if self._thread_id is None or not is_due():
                return False
            self._is_thrown = True
            _set_exception(self._thread_id, _make_thrown(stop))
            return True

    def run_inside(self, action: Callable[[int], None]) -> None:
        """Call ``action`` with the id of the thread if a handler runs in it; the handler cannot leave meanwhile."""
        with self._lock:
            if self._thread_id is not None:
                action(self._thread_id)


def _make_thrown(stop: Stop) -> type[JobStopped]:
    """CPython makes the instance itself, without arguments."""

    class Thrown(JobStopped):
        def __init__(self) -> None:
            super().__init__(stop)

    Thrown.__qualname__ = Thrown.__name__ = JobStopped.__name__
    Thrown.__module__ = JobStopped.__module__
    return Thrown


def _set_exception(thread_id: int, exception: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread_id), None if exception is None else ctypes.py_object(exception)
    )
