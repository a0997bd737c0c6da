"""Runs duties, each in one process at a time. Started by workers, ``pgbroker_reaper`` and ``pgbroker_scheduler``."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import psycopg
from psycopg import errors

from django_pgbroker import telemetry
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.maintenance.pace import Pace
from django_pgbroker.runtime.announcer import announce
from django_pgbroker.runtime.backoff_timer import BackoffTimer
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.store.duty_lock import try_duty_lock
from django_pgbroker.store.gateway import Gateway

#: Full batches that a duty may take in a row before the other duties get their turn.
_ROUNDS = 10

#: A duty waits little for locks: it can come again.
_LOCK_TIMEOUT = "2s"

#: How long a statement that is under way may hold up the end of the thread before it is cancelled.
_PATIENCE_SECONDS = 3.0

#: How often the main thread looks whether it was asked to stop.
_GLANCE_SECONDS = 0.2

_TIMEOUTS = (errors.QueryCanceled, errors.LockNotAvailable)


class DutyReport(NamedTuple):
    """What one duty did in ``run_once``: rows moved, or None when another process was in it."""

    name: str
    moved: int | None


class MaintenanceRunner:
    """A loop over duties, in a thread and on a connection of its own.

    Each tick is a transaction that begins with the duty's advisory lock, so any number of runners may exist: a duty
    whose lock is taken is skipped until its next turn. Nothing ends the loop but ``stopping``: errors and a database
    that is away are met with back-off.

    Args:
        alias: a key of ``settings.DATABASES``.
        duties: the classes of the duties.
        stopping: ends the loop when set.
        label: shown in ``pg_stat_activity`` behind ``pgbroker maintenance``.
    """

    def __init__(self, alias: str, duties: Sequence[type[Duty]], stopping: threading.Event, *, label: str = "") -> None:
        self._alias = alias
        self._paces = [Pace(duty()) for duty in duties]
        self._stopping = stopping
        self._role = f"maintenance {label}".strip()
        self._gateway: Gateway | None = None
        self._is_away = False
        self._reconnect = BackoffTimer()
        self._thread = threading.Thread(target=self._run, name="pgbroker-maintenance", daemon=True)

    def start(self) -> None:
        """Begin the loop."""
        self._thread.start()

    def run_in_foreground(self) -> None:
        """Begin the loop and return when it has ended, for a process that does nothing else.

        The loop has its own thread here too: a signal handler that sets ``stopping`` would deadlock now and then with a
        wait for the same event in the main thread.

        Raises:
            RuntimeError: the loop ended by itself, or does not end.
        """
        self.start()
        while self._thread.is_alive() and not self._stopping.is_set():
            self._thread.join(_GLANCE_SECONDS)
        if not self._stopping.is_set():
            raise RuntimeError("the maintenance loop ended by itself; its traceback is above, restart the process")
        if not self.join():
            raise RuntimeError(
                "the maintenance loop does not end; the server answers neither its statement nor a cancel"
            )

    def join(self, timeout_seconds: float = 10.0) -> bool:
        """Wait for the thread after ``stopping`` was set, and cancel what holds it up; whether it has ended."""
        self._thread.join(min(_PATIENCE_SECONDS, timeout_seconds))
        gateway = self._gateway
        if self._thread.is_alive() and gateway is not None and not gateway.connection.closed:
            gateway.connection.cancel_safe(timeout=_PATIENCE_SECONDS)
            self._thread.join(max(timeout_seconds - _PATIENCE_SECONDS, 0))
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                pace = min(self._paces, key=lambda each: each.due_at)
                if not self._stopping.wait(pace.wait_seconds):
                    self._take_turn(pace)
        finally:
            self._disconnect()

    def run_once(self) -> list[DutyReport]:
        """Run each duty until nothing is left for it, one after the other.

        Raises:
            psycopg.Error: the first error; the duties before it have done their work.
        """
        try:
            return [self._run_to_the_end(pace) for pace in self._paces]
        finally:
            self._disconnect()

    def _run_to_the_end(self, pace: Pace) -> DutyReport:
        moved: int | None = None
        while not self._stopping.is_set():
            swept = self._sweep(self._connect(), pace)
            if swept is None:
                break
            moved = (moved or 0) + swept.moved
            if not swept.has_more:
                break
        return DutyReport(pace.duty.name, moved)

    def _take_turn(self, pace: Pace) -> None:
        try:
            gateway = self._connect()
        except Exception as error:  # a resolver, a driver or settings may raise anything
            self._wait_for_database(error)
            return
        try:
            pace.come_again(has_more=self._sweep_in_rounds(gateway, pace))
        except Exception as error:  # whatever a duty raises, the others go on
            if self._stopping.is_set():
                return
            if gateway.connection.closed:
                self._wait_for_database(error)
            else:
                self._back_off(pace, error)

    def _sweep_in_rounds(self, gateway: Gateway, pace: Pace) -> bool:
        for _ in range(_ROUNDS):
            swept = self._sweep(gateway, pace)
            self._note_database_is_there()
            if swept is None or not swept.has_more:
                return False
            if self._stopping.is_set():
                break
        return True

    def _sweep(self, gateway: Gateway, pace: Pace) -> Swept | None:
        began = time.monotonic()
        swept = _tick(gateway, pace.duty, pace.batch)
        if swept is not None:
            self._tell(pace, swept, time.monotonic() - began)
        return swept

    def _tell(self, pace: Pace, swept: Swept, seconds: float) -> None:
        """Announce and log what is committed by now; before that workers would look in vain."""
        duty = pace.duty
        if pace.record_success():
            telemetry.info("maintenance.recovered", "a duty works again", duty=duty.name)
        for queue in sorted(swept.woken_queues):
            announce(self._alias, queue)
        for report in swept.reports:
            report()
        if swept.moved:
            tell = telemetry.debug if duty.is_routine else telemetry.info
            tell(
                "maintenance.swept",
                "a duty did its work",
                duty=duty.name,
                moved=swept.moved,
                milliseconds=round(seconds * 1000, 1),
            )

    def _back_off(self, pace: Pace, error: Exception) -> None:
        is_timeout = isinstance(error, _TIMEOUTS)
        if pace.record_failure(is_timeout):
            telemetry.emit(
                logging.WARNING if isinstance(error, psycopg.OperationalError) else logging.ERROR,
                "maintenance.failed",
                f"a duty failed and comes again later: {_first_line(error)}",
                exc_info=None if isinstance(error, psycopg.Error) else error,
                duty=pace.duty.name,
                failures=pace.failures,
                batch=pace.batch,
            )

    def _connect(self) -> Gateway:
        if self._gateway is None or self._gateway.connection.closed:
            self._gateway = open_gateway(self._alias, self._role, lock_timeout=_LOCK_TIMEOUT)
        return self._gateway

    def _disconnect(self) -> None:
        if self._gateway is not None:
            self._gateway.connection.close()
            self._gateway = None

    def _wait_for_database(self, error: Exception) -> None:
        self._disconnect()
        if not self._is_away:
            telemetry.warning("maintenance.database_lost", f"the duties wait for the database: {_first_line(error)}")
        self._is_away = True
        self._stopping.wait(self._reconnect.next_seconds())

    def _note_database_is_there(self) -> None:
        """Only a transaction that went well counts: a server may take connections and drop them again."""
        if self._is_away:
            telemetry.info("maintenance.database_back", "the duties go on")
        self._is_away = False
        self._reconnect.reset()


def _tick(gateway: Gateway, duty: Duty, batch: int) -> Swept | None:
    if not duty.in_transaction:
        return duty.tick(gateway, batch)
    with gateway.transaction():
        return duty.tick(gateway, batch) if try_duty_lock(gateway, duty.name) else None


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
