"""The only place that runs SQL: named statements on the broker's own connections and on the caller's Django connection."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_pgbroker.store.statement import statement

type Params = Mapping[str, Any]
type Row = tuple[Any, ...]


class Gateway:
    """Runs the named statements on one psycopg connection that belongs to the broker.

    Args:
        connection: an open connection in autocommit mode, made by ``runtime.connections``.
    """

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection

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
    def pipelined_transaction(self) -> Iterator[None]:
        """One transaction whose statements travel in one round trip; read the answers after the block."""
        with self.connection.pipeline():
            self.connection.execute("begin")
            yield
            self.connection.execute("commit")


class CallerGateway:
    """Runs the named statements on the caller's Django connection, inside the caller's transaction.

    Errors are Django's own (``django.db.DatabaseError`` and below). ``fetch_guarded`` never costs the caller's writes.

    Args:
        alias: a key of ``settings.DATABASES``.
    """

    def __init__(self, alias: str = DEFAULT_DB_ALIAS) -> None:
        self.alias = alias

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """Django's connection of this thread."""
        return connections[self.alias]

    def fetch(self, name: str, params: Params | None = None) -> list[Row]:
        """Run a statement and return its rows."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement(name).text, params or {})
            return list(cursor.fetchall()) if cursor.description else []

    def execute(self, name: str, params: Params | None = None) -> int:
        """Run a statement and return how many rows it touched."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement(name).text, params or {})
            return int(cursor.rowcount)
