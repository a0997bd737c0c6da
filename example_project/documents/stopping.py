"""Turn Ctrl-C, SIGTERM and the death of the starting ``make`` into one exception. Used by the demo."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class StopAsked(KeyboardInterrupt):
    """Somebody wants the demo to end. No ``except Exception`` on the way may take it for a failure."""


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raise StopAsked in the main thread at the first signal; later ones change nothing, for the end is under way.

    Own handlers for both signals: a script's ``&`` hands SIGINT down ignored, and SIGTERM alone would skip ``finally``.
    """
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if not asked.is_set():
            asked.set()
            raise StopAsked

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # under nohup it stays ignored
        numbers.append(signal.SIGHUP)
    before: dict[signal.Signals, Any] = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Starter:
    """The process that started this one, when it is ``make``: killed with -9, it cannot tell us."""

    def __init__(self) -> None:
        self._process_id = os.getppid() if "MAKELEVEL" in os.environ else None

    def check_alive(self) -> None:
        """Raise StopAsked when the ``make`` that started us is gone."""
        if self._process_id is not None and os.getppid() != self._process_id:
            raise StopAsked
