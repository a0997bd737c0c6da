"""Hear that a queue has work. Only makes it sooner: polling is the truth. Used by the worker."""

import os
import select
import threading
from collections.abc import Callable

from django_pgbroker import telemetry
from django_pgbroker.conf import Settings
from django_pgbroker.runtime.backoff_timer import BackoffTimer
from django_pgbroker.runtime.connections import open_connection

#: The channel that producers, duties and operators notify; the payload is the name of a queue, or names a cancel.
CHANNEL = "pgbroker_wake"

#: Before the id of a running job that is to be cancelled; no queue has a colon in its name.
_CANCEL = "cancel:"


def name_cancel(job_id: int) -> str:
    """What announces that a running job is to be cancelled, in place of a queue's name."""
    return f"{_CANCEL}{job_id}"


def read_cancel(payload: str | None) -> int | None:
    """The job of such an announcement, or ``None`` for a queue."""
    number = payload.removeprefix(_CANCEL) if payload and payload.startswith(_CANCEL) else ""
    return int(number) if number.isascii() and number.isdigit() else None


#: After this long in silence the connection is asked whether it still lives: a half-open one never errs by itself.
_PROBE_SECONDS = 10.0

#: The answer may take twice this long; a listener that hears nothing is found out after some twenty seconds in all.
_PROBE_TIMEOUT = "5s"


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
        self._stop_reader, self._stop_writer = os.pipe()
        self._backoff = BackoffTimer()
        self._is_lost = False

    def stop(self) -> None:
        """End the thread at once, unless it is connecting."""
        if not self._stopped.is_set():
            # Before the flag: once it is set, the thread may end and close the pipe, whose number somebody else gets.
            os.write(self._stop_writer, b".")
            self._stopped.set()

    def run(self) -> None:
        """Listen, and again after every error."""
        try:
            while not self._stopped.is_set():
                self._listen_until_error()
        finally:
            os.close(self._stop_reader)
            os.close(self._stop_writer)

    def _listen_until_error(self) -> None:
        try:
            self._listen()
        except Exception as error:
            if not self._is_lost:
                telemetry.warning("listener.lost", f"polling alone until it is back: {error}".strip())
            self._is_lost = True
            self._stopped.wait(self._backoff.next_seconds())

    def _listen(self) -> None:
        with open_connection(self._alias, self._label, statement_timeout=_PROBE_TIMEOUT) as connection:
            connection.execute(f"listen {CHANNEL}", prepare=False)
            self._backoff.reset()
            if self._is_lost:
                telemetry.info("listener.back", "new jobs are heard of again")
            self._is_lost = False
            self._wake(None)
            while not self._stopped.is_set():
                is_readable = self._wait(connection.fileno())
                for notify in connection.notifies(timeout=0):
                    self._wake(notify.payload)
                if not is_readable and not self._stopped.is_set():
                    connection.execute("select 1", prepare=False)

    def _wait(self, connection_fileno: int) -> bool:
        """Wait for news from the server or a stop; False after a time without either."""
        poll = select.poll()
        poll.register(connection_fileno, select.POLLIN)
        poll.register(self._stop_reader, select.POLLIN)
        return bool(poll.poll(_PROBE_SECONDS * 1000))


def make_listener(settings: Settings, alias: str, name: str, wake: Callable[[str | None], None]) -> Listener | None:
    """A listener for the jobs in one database, not started yet; ``None`` where polling alone has to do.

    Args:
        settings: of the broker; they say whether to listen, and on which alias.
        alias: the database that holds the jobs.
        name: as for ``Listener``.
        wake: as for ``Listener``.
    """
    if not settings.listen:
        return None
    listening_alias = settings.listening_alias(alias)
    if listening_alias is None:
        telemetry.info(
            "listener.none",
            "polling alone: nobody can LISTEN through a pooler; name a direct alias in PGBROKER['LISTEN_DATABASE']",
        )
        return None
    return Listener(listening_alias, name, wake)
