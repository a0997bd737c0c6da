"""Tell listening workers that a queue has work, outside the caller's transaction. Used by enqueue and by the duties.

A NOTIFY inside the caller's transaction would serialise all commits of the database, and one after each of them would
still cost a round trip: a thread of this process sends it, once per queue and short window. A lost one costs a poll.
"""

import atexit
import os
import threading
import time
from dataclasses import dataclass
from typing import NamedTuple

from django.core import mail
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from django_pgbroker import telemetry
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.runtime.listener import CHANNEL
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.notify import notify_queues

#: A queue is announced at once and then at most this often; the last job of a burst is announced too.
WINDOW_SECONDS = 0.02
#: The thread and its connections end after this long without work. Opening one makes a job wait for some milliseconds.
IDLE_SECONDS = 30.0
#: In a test run much sooner: an idle connection would block the DROP DATABASE at its end.
IDLE_SECONDS_IN_TESTS = 0.5
_PAUSE_AFTER_ERROR_SECONDS = 1.0
_FLUSH_SECONDS = 1.0


class Database(NamedTuple):
    """A database as this process reaches it; the test runner changes the name behind an alias."""

    alias: str
    name: str
    host: str
    port: str


class Wake(NamedTuple):
    """One thing to announce."""

    database: Database
    queue: str


class Announcer:
    """Collects what is to be announced and sends it from a thread that lives only while there is work."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: set[Wake] = set()
        self._sent_at: dict[Wake, float] = {}
        self._is_running = False
        self._is_sending = False
        self._is_closing = False

    def announce(self, wake: Wake) -> None:
        """Have a queue announced soon."""
        with self._changed:
            self._waiting.add(wake)
            if not self._is_running:
                threading.Thread(target=self._run, name="pgbroker-announcer", daemon=True).start()
                self._is_running = True
            self._changed.notify_all()

    def flush(self, limit_seconds: float) -> bool:
        """Wait until everything announced so far is sent; False when the limit came first."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._is_sending), limit_seconds)

    def close(self, limit_seconds: float) -> bool:
        """Have the thread send what waits, close its connections and end; False when the limit came first."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
            is_closed = self._changed.wait_for(lambda: not self._is_running, limit_seconds)
            self._is_closing = False
            return is_closed

    def _run(self) -> None:
        gateways: dict[Database, Gateway] = {}
        is_ended = False
        while not is_ended:
            due = self._take_due()
            try:
                _send(due, gateways)
            except Exception as error:
                telemetry.debug("announcer.failed", f"workers find the jobs by polling: {error}".strip())
                _close(gateways)
                time.sleep(_PAUSE_AFTER_ERROR_SECONDS)
            if not due:
                _close(gateways)
            is_ended = self._finish(due)

    def _take_due(self) -> list[Wake]:
        """Wait for what is due and take it; empty after a long enough time without work."""
        with self._changed:
            idle_at = time.monotonic() + _idle_seconds()
            while True:
                now = time.monotonic()
                idle_at = now if self._is_closing else idle_at
                due_at = {wake: self._sent_at.get(wake, -WINDOW_SECONDS) + WINDOW_SECONDS for wake in self._waiting}
                if due := [wake for wake, moment in due_at.items() if moment <= now]:
                    self._waiting.difference_update(due)
                    self._sent_at.update(dict.fromkeys(due, now))
                    self._is_sending = True
                    return due
                if not due_at and idle_at <= now:
                    return []
                self._changed.wait(min(due_at.values(), default=idle_at) - now)

    def _finish(self, sent: list[Wake]) -> bool:
        """Note that ``sent`` is done; True when there was nothing and still is nothing, so that the thread ends."""
        with self._changed:
            self._is_sending = False
            is_ended = not sent and not self._waiting
            if is_ended:
                self._is_running = False
                self._sent_at.clear()
            self._changed.notify_all()
            return is_ended


def announce(alias: str, queue: str) -> None:
    """Announce a queue from the background thread; returns at once and never raises.

    Args:
        alias: a key of ``settings.DATABASES``.
        queue: the queue's name.
    """
    try:
        _announcer.announce(Wake(_identify(alias), queue))
    except Exception as error:
        telemetry.debug("announcer.failed", f"workers find the jobs by polling: {error}".strip(), queue=queue)


def announce_on_commit(alias: str, queue: str, connection: BaseDatabaseWrapper | None = None) -> None:
    """Announce a queue as soon as the caller's transaction has committed; at once where there is none.

    In a transaction that Django does not manage (autocommit off, a raw BEGIN) nobody knows the commit: polling finds
    the job.

    Args:
        alias: the caller's connection.
        queue: the queue's name.
        connection: the caller's, where it is at hand.
    """
    connection = connection or connections[alias]
    if connection.in_atomic_block:
        hook = _Announcement(alias, queue)
        if not _is_registered(connection, hook):
            transaction.on_commit(hook, using=alias, robust=True)
    elif connection.get_autocommit() and connection.connection.info.transaction_status == TransactionStatus.IDLE:
        announce(alias, queue)


@dataclass(frozen=True)
class _Announcement:
    """A hook on a commit; equal ones are the same announcement."""

    alias: str
    queue: str

    def __call__(self) -> None:
        announce(self.alias, self.queue)


def _is_registered(connection: BaseDatabaseWrapper, hook: _Announcement) -> bool:
    """Whether the newest hook says the same and goes with the same savepoints: the jobs of a loop need one."""
    hooks = connection.run_on_commit
    return bool(hooks) and hooks[-1][1] == hook and hooks[-1][0] == set(connection.savepoint_ids)


def flush_announcements(limit_seconds: float = _FLUSH_SECONDS) -> bool:
    """Wait until everything announced so far is sent, as a process does at its end; False when the limit came first."""
    return _announcer.flush(limit_seconds)


def close_announcer(limit_seconds: float) -> bool:
    """Send what waits and close the connections, before a database is dropped; False when the limit came first."""
    return _announcer.close(limit_seconds)


def _idle_seconds() -> float:
    # Django's test runner makes the outbox, and has no hook before it drops its databases
    return IDLE_SECONDS_IN_TESTS if hasattr(mail, "outbox") else IDLE_SECONDS


def _identify(alias: str) -> Database:
    given = connections[alias].settings_dict
    return Database(alias, str(given.get("NAME", "")), str(given.get("HOST", "")), str(given.get("PORT", "")))


def _send(due: list[Wake], gateways: dict[Database, Gateway]) -> None:
    for database in {wake.database for wake in due}:
        if database not in gateways:
            if _identify(database.alias) != database:
                continue  # the alias points elsewhere by now: that database is none of this process's business
            gateways[database] = open_gateway(database.alias, "announcer", statement_timeout="5s")
        notify_queues(gateways[database], CHANNEL, [wake.queue for wake in due if wake.database == database])


def _close(gateways: dict[Database, Gateway]) -> None:
    for gateway in gateways.values():
        gateway.connection.close()
    gateways.clear()


def _begin_anew() -> None:
    """In a forked child: the parent's thread does not exist here, and its sockets are the parent's."""
    global _announcer  # noqa: PLW0603
    _announcer = Announcer()


_announcer = Announcer()
os.register_at_fork(after_in_child=_begin_anew)
atexit.register(flush_announcements)
