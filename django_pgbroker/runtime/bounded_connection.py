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

    #: Longest silence in the middle of a statement, until the session says otherwise; None waits for ever.
    silence_seconds: float | None = 15.0

    def wait(self, gen: PQGen[RV], *args: Any, **kwargs: Any) -> RV:
        """Run one of psycopg's generators to its end.

        Raises:
            psycopg.OperationalError: the server was silent for too long; the connection is closed.
        """
        if self.silence_seconds is not None:
            gen = self._bound(gen, self.silence_seconds)
        return super().wait(gen, *args, **kwargs)

    def _bound(self, gen: PQGen[RV], seconds: float) -> PQGen[RV]:
        try:
            wanted = next(gen)
            silent_until = time.monotonic() + seconds
            while True:
                # psycopg sends "nothing is ready" ten times a second
                ready = yield wanted
                if ready:
                    silent_until = time.monotonic() + seconds
                elif time.monotonic() > silent_until:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"the server has said nothing for {seconds:g} s; disconnected")
                wanted = gen.send(ready)
        except StopIteration as end:
            value: RV = end.value
            return value
