"""A database that is away, or refuses the worker's turns: how long to wait, and what to say of it."""

import time

import psycopg

from django_pgbroker import telemetry
from django_pgbroker.runtime.backoff_timer import BackoffTimer
from django_pgbroker.runtime.connections import describe_error

#: What goes on is said again this often.
_REPEAT_SECONDS = 60.0


class Outage:
    """On from the first error until a turn has gone well. Changed by the main thread, asked by the slots too."""

    def __init__(self) -> None:
        self.is_on = False
        self._backoff = BackoffTimer()
        self._told_at = 0.0

    def note(self, error: Exception) -> None:
        """A turn or a connection has failed."""
        now = time.monotonic()
        if not self.is_on or now - self._told_at >= _REPEAT_SECONDS:
            self._told_at = now
            _tell(error)
        self.is_on = True

    def next_wait_seconds(self) -> float:
        """How long to wait before the next try."""
        return self._backoff.next_seconds()

    def end(self) -> None:
        """A turn has gone well."""
        if self.is_on:
            telemetry.info("worker.database_back", "work goes on")
            self.is_on = False
        self._backoff.reset()


def _tell(error: Exception) -> None:
    sqlstate = error.sqlstate if isinstance(error, psycopg.Error) else None
    said = f"no turn can be taken, trying again: {describe_error(error)}"
    telemetry.warning("worker.database_lost", said, **({"sqlstate": sqlstate} if sqlstate else {}))
