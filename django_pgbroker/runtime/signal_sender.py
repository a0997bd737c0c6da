"""Send Django signals from a thread of their own, so that slow receivers stall nobody. For workers and reclaimer."""

import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

from django.db import connections
from django.dispatch import Signal

from django_pgbroker import telemetry

#: So many signals may wait; what comes beyond is dropped.
MOST_WAITING = 10_000

#: The thread ends after this long without work.
_IDLE_SECONDS = 5.0


class Sending(NamedTuple):
    """One signal to be sent."""

    signal: Signal
    sender: object
    kwargs: dict[str, Any]


class SignalSender:
    """A bounded queue and a daemon thread, which lives only while there is work.

    Args:
        most_waiting: how many signals may wait.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._most = most_waiting
        self._changed = threading.Condition()
        self._waiting: deque[Sending] = deque()
        self._is_running = False
        self._is_sending = False
        self._has_told = False

    def put(self, sendings: list[Sending]) -> None:
        """Have signals sent soon; never waits. Those that find the queue full are dropped, which is told once."""
        with self._changed:
            room = self._most - len(self._waiting)
            self._waiting.extend(sendings[:room])
            if not self._is_running:
                threading.Thread(target=self._run, name="pgbroker-signals", daemon=True).start()
                self._is_running = True
            self._changed.notify_all()
            is_news = len(sendings) > room and not self._has_told
            self._has_told = self._has_told or is_news
        if is_news:
            message = "receivers of signals are too slow: what finds the queue full is dropped, from now on in silence"
            telemetry.warning("signals.dropped", message, waiting=self._most)

    def flush(self, limit_seconds: float) -> bool:
        """Wait until everything so far is sent; False when the limit came first."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._is_sending), limit_seconds)

    def _run(self) -> None:
        try:
            while sending := self._take():
                _settle_connections()
                # a receiver may end its thread by SystemExit, which send_robust lets pass
                with suppress(BaseException):
                    sending.signal.send_robust(sending.sender, **sending.kwargs)
                with self._changed:
                    is_idle = not self._waiting
                if is_idle:
                    _discard_connections()
        finally:
            connections.close_all()

    def _take(self) -> Sending | None:
        """Wait for the next one; None after a long enough time without any: the thread is to end."""
        with self._changed:
            self._is_sending = False
            self._changed.notify_all()
            idle_at = time.monotonic() + _IDLE_SECONDS
            while not self._waiting:
                if not self._changed.wait(max(idle_at - time.monotonic(), 0.0)) and not self._waiting:
                    self._is_running = False
                    return None
            self._is_sending = True
            return self._waiting.popleft()


def _settle_connections() -> None:
    """Before a signal: what a receiver left broken or in a transaction is not for the next one."""
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is None:
            continue
        if wrapper.in_atomic_block or not wrapper.get_autocommit():
            _discard(wrapper)
        elif wrapper.errors_occurred:
            wrapper.close_if_unusable_or_obsolete()


def _discard_connections() -> None:
    """While there is nothing to send no connection is held: an idle one would be cut off without anybody's notice."""
    for wrapper in connections.all(initialized_only=True):
        _discard(wrapper)


def _discard(wrapper: Any) -> None:
    wrapper.run_on_commit = []
    with suppress(Exception):
        wrapper.close()
    del connections[wrapper.alias]


def send_later(sendings: list[Sending]) -> None:
    """Send these signals from the thread of this process; returns at once and never raises."""
    if sendings:
        _sender.put(sendings)


def flush_signals(limit_seconds: float) -> bool:
    """Wait until all signals so far are sent, as a process does at its end; False when the limit came first."""
    return _sender.flush(limit_seconds)


_sender = SignalSender()
