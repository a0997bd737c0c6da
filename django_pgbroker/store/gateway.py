"""The only place that runs SQL: named statements on the broker's own connections and on the caller's of Django."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import PipelineStatus, TransactionStatus

from django_pgbroker.store.statement import statement

type Params = Mapping[str, Any]
type Row = tuple[Any, ...]

_SAVEPOINT = "pgbroker_guard"


class Gateway:
    """Runs the named statements on one psycopg connection that belongs to the broker.

    Args:
        connection: an open connection in autocommit mode, made by ``runtime.connections``.
    """

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection

    @property
    def process_id(self) -> int | None:
        """The server process behind the connection; ``None`` where that changes from one transaction to the next."""
        return self.connection.info.backend_pid

    def bound_silence(self, seconds: float) -> None:
        """Wait for each word of the server for so long at most, the one that is waited for now too."""
        self.connection.silence_seconds = seconds  # type: ignore[attr-defined]

    def send(self, name: str, params: Params | None = None) -> psycopg.Cursor[Row]:
        """Run a statement and return its cursor; inside ``pipeline()`` the answer arrives later.

        Raises:
            psycopg.Error: as the server answered.
        """
        return self.connection.execute(statement(name).text, params or {})

    def fetch(self, name: str, params: Params | None = None) -> list[Row]:
        """Run a statement and return its rows."""
        return self.send(name, params).fetchall()

    def fetch_one(self, name: str, params: Params | None = None) -> Row:
        """Run a statement that always answers one row, and return it."""
        row = self.send(name, params).fetchone()
        if row is None:
            raise LookupError(f"the statement {name} answered no row")
        return row

    def execute(self, name: str, params: Params | None = None) -> int:
        """Run a statement and return how many rows it touched."""
        return self.send(name, params).rowcount

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction; committed at the end of the block, rolled back by an exception."""
        with self.connection.transaction():
            yield

    @contextmanager
    def pipelined_transaction(self, meanwhile: Callable[[], None] = lambda: None) -> Iterator[None]:
        """One transaction whose statements travel in one round trip; read the answers after the block.

        Args:
            meanwhile: called when all statements are on their way, the COMMIT too.

        Raises:
            psycopg.Error: a statement failed and all is rolled back; or the connection was lost, perhaps in the commit.
        """
        try:
            with self.connection.pipeline():
                self._begin()
                yield
                self.connection.execute("commit")
                meanwhile()
        except BaseException:
            with suppress(psycopg.Error):
                self.connection.rollback()
            raise

    def _begin(self) -> None:
        self.connection.execute("begin")


class CallerGateway:
    """Runs the named statements on the caller's Django connection, inside the caller's transaction.

    Errors are Django's own (``django.db.DatabaseError`` and below). ``fetch_guarded`` never costs the caller's writes.

    Args:
        alias: a key of ``settings.DATABASES``.
        connection: another Django connection to the same database; by default the alias's of this thread.
    """

    def __init__(self, alias: str = DEFAULT_DB_ALIAS, connection: BaseDatabaseWrapper | None = None) -> None:
        self.alias = alias
        self._connection = connection

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """Django's connection of the thread that asked first, or the one that was given."""
        if self._connection is None:
            self._connection = connections[self.alias]
        return self._connection

    @property
    def is_in_transaction(self) -> bool:
        """Whether the caller has a transaction open, by ``atomic``, by hand or by a raw BEGIN."""
        connection = self.connection
        if connection.in_atomic_block:
            return True
        connection.ensure_connection()
        if not connection.get_autocommit():
            return True
        return connection.connection.info.transaction_status != TransactionStatus.IDLE  # type: ignore[no-any-return]

    def fetch(self, name: str, params: Params | None = None) -> list[Row]:
        """Run a statement and return its rows."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement(name).text, params or {})
            return list(cursor.fetchall())

    def execute(self, name: str, params: Params | None = None) -> int:
        """Run a statement and return how many rows it touched."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement(name).text, params or {})
            return int(cursor.rowcount)

    def fetch_guarded(self, name: str, params: Params | None = None) -> list[Row]:
        """Run a statement and return its rows; when it fails, the caller's transaction stays as it was before.

        Inside a transaction the statement travels between SAVEPOINT and RELEASE in one round trip. Where the connection
        cannot send several statements at once (server-side binding, a pipeline), they are three.

        Raises:
            django.db.DatabaseError: as the server answered.
        """
        connection = self.connection
        if not (connection.in_atomic_block or self.is_in_transaction):
            return self.fetch(name, params)
        connection.ensure_connection()
        raw = connection.connection
        if raw.pgconn.pipeline_status != PipelineStatus.OFF:
            with raw.pipeline() as pipeline:
                return self._fetch_in_three(name, params, pipeline.sync)
        if self._binds_on_server:
            return self._fetch_in_three(name, params, lambda: None)
        with connection.cursor() as cursor:
            try:
                cursor.execute(_guard(name), params or {})
            except (DatabaseError, InterfaceError):
                self._roll_back_to_savepoint()
                raise
            cursor.nextset()
            return list(cursor.fetchall())

    def _fetch_in_three(self, name: str, params: Params | None, synchronise: Callable[[], None]) -> list[Row]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"savepoint {_SAVEPOINT}")
            try:
                rows = self.fetch(name, params)
            except (DatabaseError, InterfaceError):
                # a pipeline that has failed ignores whatever is sent before its next synchronisation
                synchronise()
                self._roll_back_to_savepoint()
                synchronise()
                raise
            cursor.execute(f"release savepoint {_SAVEPOINT}")
            return rows

    @contextmanager
    def all_or_nothing(self, lock_timeout_milliseconds: int | None = None) -> Iterator[None]:
        """A transaction around the block, or a savepoint in the caller's: when it fails, the caller's writes stay.

        Args:
            lock_timeout_milliseconds: the longest wait for a lock; in the caller's transaction its own limit counts.

        Raises:
            django.db.DatabaseError: as the server answered.
        """
        connection = self.connection
        is_own = not (connection.in_atomic_block or self.is_in_transaction)
        if is_own or connection.in_atomic_block:
            with transaction.atomic(using=self.alias):
                if is_own and lock_timeout_milliseconds is not None:
                    with connection.cursor() as cursor:
                        cursor.execute(f"set local lock_timeout = {int(lock_timeout_milliseconds)}")
                yield
            return
        # begun by hand: Django's atomic() knows nothing of it
        with connection.cursor() as cursor:
            cursor.execute(f"savepoint {_SAVEPOINT}")
            try:
                yield
            except BaseException:
                self._roll_back_to_savepoint()
                raise
            cursor.execute(f"release savepoint {_SAVEPOINT}")

    def send_closing(self, name: str, params: Params) -> None:
        """Run the last statement of the caller's transaction, whose answer is of no interest.

        Raises:
            django.db.transaction.TransactionManagementError: the transaction is to be rolled back already.
            psycopg.Error: as the server answered; the transaction has failed.
        """
        self.connection.validate_no_broken_transaction()
        self.connection.connection.execute(statement(name).text, params)

    @property
    def _binds_on_server(self) -> bool:
        return bool(self.connection.settings_dict["OPTIONS"].get("server_side_binding"))

    def _roll_back_to_savepoint(self) -> None:
        try:
            with self.connection.cursor() as cursor:
                cursor.execute(f"rollback to savepoint {_SAVEPOINT}")
                cursor.execute(f"release savepoint {_SAVEPOINT}")
        except (DatabaseError, InterfaceError):
            # the transaction cannot be saved: Django must not commit it as if nothing had happened
            if self.connection.in_atomic_block:
                self.connection.needs_rollback = True


@cache
def _guard(name: str) -> str:
    return f"savepoint {_SAVEPOINT}; {statement(name).text}; release savepoint {_SAVEPOINT}"


@contextmanager
def separate_transaction(alias: str, lock_timeout_milliseconds: int) -> Iterator[CallerGateway]:
    """A transaction of its own on a new connection, made by Django as the alias says and closed afterwards.

    Args:
        alias: a key of ``settings.DATABASES``.
        lock_timeout_milliseconds: the longest wait for a lock.

    Raises:
        django.db.DatabaseError: as the server answered, or no connection is to be had.
    """
    connection = connections.create_connection(alias)
    try:
        connection.ensure_connection()
        connection.set_autocommit(False)
        with connection.cursor() as cursor:
            # local: behind a transaction pooler a session setting would reach other clients
            cursor.execute(f"set local lock_timeout = {int(lock_timeout_milliseconds)}")
        yield CallerGateway(alias, connection)
        connection.commit()
    finally:
        with suppress(DatabaseError, InterfaceError):
            connection.close()
