"""Points at which a process kills itself, chosen by the environment: DRILL_CRASH="judged:3" is the third time there.

DRILL_CRASH="acknowledging:3:STOP" freezes it instead.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from django_pgbroker.runtime import connections
from django_pgbroker.store.gateway import CallerGateway, Gateway
from django_pgbroker.worker import atomic

VARIABLE = "DRILL_CRASH"

#: The claim is committed and no handler has begun.
CLAIMED = "claimed"
#: In the handler, between its two effects.
HANDLER = "handler"
#: The handler has ended and its verdict is not sent.
JUDGED = "judged"
#: The server has acknowledged and the transaction is open.
ACKNOWLEDGING = "acknowledging"
#: The commit is sent and its answer is not read.
COMMITTING = "committing"
#: A transactional job's closing statement is answered, and its commit not sent.
CLOSING = "closing"
#: The commit of a transactional job is done, and the worker does not know of it.
CLOSED = "closed"
#: The reaper has taken lapsed jobs back and has not committed.
SWEEPING = "sweeping"

WORKER_POINTS = (CLAIMED, HANDLER, JUDGED, ACKNOWLEDGING, COMMITTING)
ATOMIC_POINTS = (CLAIMED, HANDLER, CLOSING, CLOSED)
POINTS = (*WORKER_POINTS, CLOSING, CLOSED, SWEEPING)

_point, _, _rest = os.environ.get(VARIABLE, "").partition(":")
_number, _, _signal = _rest.partition(":")
_left = [int(_number or 1)]
_lock = threading.Lock()


def is_last(point: str) -> bool:
    """Whether this time the process is to die at this point."""
    if point != _point:
        return False
    with _lock:
        _left[0] -= 1
        return _left[0] == 0


def die() -> None:
    """Nothing is flushed, closed or said."""
    os.kill(os.getpid(), signal.Signals[f"SIG{_signal or 'KILL'}"])


def reach(point: str) -> None:
    """Go on, or die."""
    if is_last(point):
        die()


class TrappedGateway(Gateway):
    """A gateway that dies at the chosen point between two messages to the server."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self._acknowledges: list[Any] = []
        self._claims: list[Any] = []
        self._is_sweep = False

    def send(self, name: str, params: Any = None) -> Any:
        if name == "acknowledge_jobs" and not params["lapsed"]:
            reach(JUDGED)
        cursor = super().send(name, params)
        if name == "acknowledge_jobs":
            self._acknowledges.append(cursor)
            self._is_sweep = params["lapsed"]
        if name == "claim_jobs":
            self._claims.append(cursor)
        return cursor

    @contextmanager
    def pipelined_transaction(self, meanwhile: Callable[[], None] = lambda: None) -> Iterator[None]:
        with super().pipelined_transaction(meanwhile):
            yield
            if self._acknowledges and is_last(ACKNOWLEDGING):
                self._acknowledges[-1].fetchall()
                die()
            if self._acknowledges and is_last(COMMITTING):
                self.connection.execute("commit")
                self.connection.pgconn.send_flush_request()
                self.connection.pgconn.flush()
                die()
        if any(claim.rowcount > 0 for claim in self._claims):
            reach(CLAIMED)
        self._acknowledges.clear()
        self._claims.clear()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with super().transaction():
            yield
            if self._is_sweep:
                reach(SWEEPING)
            self._is_sweep = False
            self._acknowledges.clear()


class TrappedCallerGateway(CallerGateway):
    """The same on the connection of a handler, for the statement that closes a transactional job."""

    def send_closing(self, name: str, params: Any) -> None:
        super().send_closing(name, params)
        reach(CLOSING)
        transaction.on_commit(lambda: reach(CLOSED), using=self.alias)


def install() -> None:
    """Have the broker's own connections use the trapped gateways, in a process that is to crash."""
    if _point:
        assert _point in POINTS, f"{VARIABLE} names no point: {_point}"
        connections.Gateway = TrappedGateway  # type: ignore[misc]
        atomic.CallerGateway = TrappedCallerGateway  # type: ignore[misc]
