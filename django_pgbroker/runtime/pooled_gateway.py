"""The gateway behind a pooler in transaction mode, such as PgBouncer. Made by ``runtime.connections``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import sql

from django_pgbroker.store.gateway import Gateway, Params, Row

#: A database, or another client of the pool, may have set another level.
_BEGIN = sql.SQL("begin isolation level read committed")


class PooledGateway(Gateway):
    """Leaves nothing on the server when its transaction is over, and relies on nothing that others have left there.

    Each transaction may find another server process. So every statement is in one, and every transaction begins with
    the broker's settings for itself alone, in the round trip of its BEGIN.

    Args:
        connection: an open connection in autocommit mode that prepares no statements.
        settings: a statement that makes the settings of the transaction.
    """

    def __init__(self, connection: psycopg.Connection[Row], settings: sql.Composed) -> None:
        super().__init__(connection)
        self._settings = settings
        self._is_in_transaction = False

    @property
    def process_id(self) -> None:
        """Unknown: the number that the connection was given is the pooler's, and may be that of a stranger."""
        return None

    def send(self, name: str, params: Params | None = None) -> psycopg.Cursor[Row]:
        """Run a statement and return its cursor; outside of a transaction it gets one, in the same round trip."""
        if self._is_in_transaction:
            return super().send(name, params)
        with self.pipelined_transaction():
            return super().send(name, params)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction, or a savepoint within one."""
        if self._is_in_transaction:
            with super().transaction():
                yield
            return
        with self._marked():
            try:
                self.connection.execute(_BEGIN + sql.SQL("; ") + self._settings)
                yield
                self.connection.execute("commit")
            except BaseException:
                with suppress(psycopg.Error):
                    self.connection.rollback()
                raise

    @contextmanager
    def pipelined_transaction(self, meanwhile: Callable[[], None] = lambda: None) -> Iterator[None]:
        """One transaction whose statements travel in one round trip; read the answers after the block."""
        with self._marked(), super().pipelined_transaction(meanwhile):
            yield
        self._let_go()

    def _let_go(self) -> None:
        """Have the pooler take the server connection back.

        psycopg may send a Flush after the end of a pipeline, when all is answered already. The server says nothing to
        that, and PgBouncer (seen with 1.18) waits for a word from it, with the connection kept from all others.
        """
        self.connection.execute("select 1", prepare=False)

    def _begin(self) -> None:
        self.connection.execute(_BEGIN)
        self.connection.execute(self._settings)

    @contextmanager
    def _marked(self) -> Iterator[None]:
        self._is_in_transaction = True
        try:
            yield
        finally:
            self._is_in_transaction = False
