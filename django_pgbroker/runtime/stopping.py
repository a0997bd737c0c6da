"""Two-stage stopping: the first signal drains, the second aborts. Used by every long-running command."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def ignore_signals() -> None:
    """Let SIGTERM and SIGINT change nothing any more: this process is at its end. Only in a main thread."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class Stopping:
    """Whether this process has been asked to stop, and how urgently. Signal handlers only set flags here.

    Args:
        on_change: called after each change, from a signal handler too: it must be quick and reentrant.
    """

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self.drain = threading.Event()
        self.abort = threading.Event()
        self.on_change = on_change
        self._received = 0
        self._handled = 0
        self._is_handling = False
        self._escalates = True

    def request_drain(self) -> None:
        """Finish what runs and take nothing new."""
        self.drain.set()
        self.on_change()

    def request_abort(self) -> None:
        """Hand everything back and go at once."""
        self.abort.set()
        self.request_drain()

    @contextmanager
    def on_signals(self, *, escalates: bool = True) -> Iterator[None]:
        """Within this block SIGTERM and SIGINT stop: the first one drains, a second one aborts.

        Args:
            escalates: false where a second signal shall change nothing, for somebody else says when to abort.

        Raises:
            ValueError: not called in the main thread.
        """
        self._escalates = escalates
        previous = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        """Handle what has come; a signal within this handler only counts, or it would wait for a lock that we hold."""
        self._received += 1
        while self._handled < self._received and not self._is_handling:
            self._is_handling = True
            if self._handled < self._received:
                self._handled += 1
                self._take_step()
            self._is_handling = False

    def _take_step(self) -> None:
        if not self.drain.is_set():
            self.request_drain()
        elif self._escalates:
            self.request_abort()
