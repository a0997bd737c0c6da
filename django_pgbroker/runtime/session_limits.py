"""Limit the statements of one handler: ``statement_timeout`` and ``lock_timeout`` on its thread's Django connections.

Set when the handler begins or a connection is opened, and put back to what they were. Used by the executor.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import DatabaseError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg.pq import TransactionStatus

from django_pgbroker.store.errors import find_sqlstate

#: What the server answers when a limit is exceeded: query canceled, lock not available.
_SQLSTATES = {"statement_timeout": "57014", "lock_timeout": "55P03"}


@contextmanager
def limit_sessions(limits: Mapping[str, float]) -> Iterator[None]:
    """Limit this thread's connections to PostgreSQL while the block runs.

    Args:
        limits: seconds by the name of the server's setting.

    Raises:
        django.db.DatabaseError: a connection refused; the block has not run.
    """
    connection_created.connect(_limit_new_connection, dispatch_uid="pgbroker_session_limits")
    sessions = _Sessions(limits)
    token = _limited.set(sessions)
    try:
        for wrapper in connections.all(initialized_only=True):
            if wrapper.connection is not None:
                sessions.limit(wrapper)
        yield
    finally:
        _limited.reset(token)
        sessions.put_back()


def find_exceeded(limits: Mapping[str, float], error: BaseException) -> str | None:
    """The name of the limit that a database error says was exceeded, if it is one of these."""
    sqlstate = find_sqlstate(error)
    return next((name for name in limits if _SQLSTATES[name] == sqlstate), None)


class _Sessions:
    """The connections that were limited, each with what it had before."""

    def __init__(self, limits: Mapping[str, float]) -> None:
        self._names = tuple(limits)
        self._values = tuple(f"{max(1, round(seconds * 1000))}ms" for seconds in limits.values())
        self._before: list[tuple[BaseDatabaseWrapper, Any, tuple[str, ...]]] = []

    def limit(self, wrapper: BaseDatabaseWrapper) -> None:
        """Set the limits, outside of any transaction, whose end might take them back."""
        if wrapper.vendor == "postgresql":
            before = _set(wrapper, self._names, self._values)
            self._before.append((wrapper, wrapper.connection, before))

    def put_back(self) -> None:
        """Set what was before, or close. A connection with an open transaction is thrown away by others."""
        for wrapper, raw, before in self._before:
            if wrapper.connection is not raw or raw.info.transaction_status != TransactionStatus.IDLE:
                continue
            wrapper.inc_thread_sharing()  # the handler may have opened it in another thread
            try:
                _set(wrapper, self._names, before)
            except (DatabaseError, InterfaceError):
                wrapper.close()
            finally:
                wrapper.dec_thread_sharing()


_limited: ContextVar[_Sessions | None] = ContextVar("pgbroker_limited_sessions", default=None)


def _limit_new_connection(connection: BaseDatabaseWrapper, **_: Any) -> None:
    if sessions := _limited.get():
        sessions.limit(connection)


def _set(wrapper: BaseDatabaseWrapper, names: tuple[str, ...], values: tuple[str, ...]) -> tuple[str, ...]:
    """Set, and answer what was before, in one round trip: a list of columns is evaluated in its order."""
    columns = ", ".join("current_setting(%s), set_config(%s, %s, false)" for _ in names)
    params = [word for name, value in zip(names, values, strict=True) for word in (name, name, value)]
    with wrapper.cursor() as cursor:
        cursor.execute(f"select {columns}", params)
        return tuple(cursor.fetchone()[::2])
