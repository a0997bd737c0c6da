"""End the statements that handlers of other threads wait for. Used by the pools when a handler must stop."""

import threading
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg.pq import TransactionStatus

#: A server that does not take the request within this time is left alone.
_TIMEOUT_SECONDS = 2.0


class StatementCanceller:
    """Knows Django's connections of every thread that opened one since ``start``."""

    def __init__(self) -> None:
        self._by_thread: dict[int, WeakSet[BaseDatabaseWrapper]] = {}

    def start(self) -> None:
        """Note connections from now on."""
        connection_created.connect(self._note, dispatch_uid=self)

    def stop(self) -> None:
        """Note none any more."""
        connection_created.disconnect(dispatch_uid=self)

    def _note(self, connection: BaseDatabaseWrapper, **_: Any) -> None:
        self._by_thread.setdefault(threading.get_ident(), WeakSet()).add(connection)

    def cancel(self, thread_id: int) -> None:
        """Ask the servers to end what this thread waits for; a connection that is idle is not touched."""
        for wrapper in list(self._by_thread.get(thread_id, ())):
            raw = wrapper.connection
            info = getattr(raw, "info", None)
            if info is not None and info.transaction_status == TransactionStatus.ACTIVE:
                with suppress(Exception):
                    raw.cancel_safe(timeout=_TIMEOUT_SECONDS)
