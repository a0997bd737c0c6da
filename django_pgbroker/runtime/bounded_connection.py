"""A psycopg connection that gives up a server which says nothing. Opened by ``runtime.connections``."""

import time
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen


class BoundedConnection(psycopg.Connection[tuple[Any, ...]]):
    """Waits for the server for so long and no longer.

    The time-outs of PostgreSQL are kept by the server, those of TCP by its kernel. A stopped server, or a proxy that
    swallows what it is sent, keeps neither: the socket stays good and no answer ever comes.
    """

    #: Longest silence in the middle of a statement; None waits for ever. A change counts for a wait under way too.
    silence_seconds: float | None = 15.0

    def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
        """Run one of psycopg's generators to its end.

        Raises:
            psycopg.OperationalError: the server was silent for too long; the connection is closed.
        """
        return super().wait(self._bound(gen), *args, **kwargs)

    def _bound(self, gen: PQGen[RV]) -> PQGen[RV]:
        try:
            wanted = next(gen)
            heard_at = time.monotonic()
            while True:
                # psycopg sends "nothing is ready" ten times a second
                ready = yield wanted
                if ready:
                    heard_at = time.monotonic()
                else:
                    self._check_silence(time.monotonic() - heard_at)
                wanted = gen.send(ready)
        except StopIteration as end:
            value: RV = end.value
            return value

    def _check_silence(self, seconds: float) -> None:
        if self.silence_seconds is not None and seconds > self.silence_seconds:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server has said nothing for {seconds:.0f} s; disconnected")
