"""End the statements that handlers of other threads wait for. Used by the pools when a handler must stop."""

import threading
from typing import Any
from weakref import WeakSet

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_pgbroker.worker.hygiene import cancel_statement
from django_pgbroker.worker.interruption import Interruptible


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

    def cancel_inside(self, region: Interruptible) -> None:
        """Ask the servers to end what the handler in ``region`` waits for, if one runs there; returns at once.

        The request is a connection of its own, which takes its time where the processor is busy: a thread makes it.
        """
        threading.Thread(target=region.run_inside, args=(self.cancel,), name="pgbroker-cancel", daemon=True).start()

    def cancel(self, thread_id: int) -> None:
        """Ask the servers to end what this thread waits for, and wait until they have taken the request."""
        for wrapper in list(self._by_thread.get(thread_id, ())):
            cancel_statement(wrapper)
