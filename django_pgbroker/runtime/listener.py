"""Hear that a queue has work. Only makes it sooner: polling is the truth. Used by the worker."""

import threading
import time
from collections.abc import Callable

import psycopg

from django_pgbroker import telemetry
from django_pgbroker.runtime.backoff_timer import BackoffTimer
from django_pgbroker.runtime.connections import open_connection

#: The channel that producers and duties notify; the payload is the name of a queue.
CHANNEL = "pgbroker_wake"

#: How long one wait lasts, so that a stop is seen soon.
_WAIT_SECONDS = 1.0

#: After this long in silence the connection is asked whether it still lives: a half-open one never errs by itself.
_PROBE_SECONDS = 10.0


class Listener(threading.Thread):
    """A thread that LISTENs on a connection of its own and comes back by itself after any error.

    Args:
        alias: a key of ``settings.DATABASES``.
        name: shown in ``pg_stat_activity``.
        wake: called with the name of a queue, and with None after each (re)connect: look for what was missed.
    """

    def __init__(self, alias: str, name: str, wake: Callable[[str | None], None]) -> None:
        super().__init__(name="pgbroker-listener", daemon=True)
        self._alias = alias
        self._label = f"listener {name}"
        self._wake = wake
        self._stopped = threading.Event()
        self._backoff = BackoffTimer()

    def stop(self) -> None:
        """End the thread within about a second."""
        self._stopped.set()

    def run(self) -> None:
        """Listen, and again after every error."""
        is_first_failure = True
        while not self._stopped.is_set():
            try:
                self._listen()
            except psycopg.Error as error:
                if is_first_failure:
                    telemetry.warning("listener.lost", f"polling alone until it is back: {error}".strip())
                is_first_failure = False
                self._stopped.wait(self._backoff.next_seconds())
            else:
                is_first_failure = True

    def _listen(self) -> None:
        with open_connection(self._alias, self._label) as connection:
            connection.execute(f"listen {CHANNEL}", prepare=False)
            self._backoff.reset()
            self._wake(None)
            heard_at = time.monotonic()
            while not self._stopped.is_set():
                for notify in connection.notifies(timeout=_WAIT_SECONDS, stop_after=1):
                    heard_at = time.monotonic()
                    self._wake(notify.payload)
                if time.monotonic() - heard_at > _PROBE_SECONDS:
                    connection.execute("select 1")
                    heard_at = time.monotonic()
