"""Errors of the broker that are database errors too: ``except django.db.DatabaseError`` of the caller still works."""

from typing import Self

from django.db import DatabaseError, DataError, InterfaceError, OperationalError
from django.db.transaction import TransactionManagementError

from django_pgbroker.domain.errors import PgbrokerError

#: serialisation failure, deadlock, lock not available: the same transaction may well succeed when it is run again
_CONFLICTS = frozenset({"40001", "40P01", "55P03"})
_LOCKED = "55P03"
#: undefined table, undefined function, no such schema
_NOT_MIGRATED = frozenset({"42P01", "42883", "3F000"})
#: in failed SQL transaction
_ABORTED = "25P02"


class BrokerDatabaseError(PgbrokerError, DatabaseError):
    """The database refused a statement of the broker; the caller's own writes are untouched.

    ``sqlstate`` is the server's code, or ``None`` when it never answered.
    """

    code = "database_error"
    sqlstate: str | None = None

    @classmethod
    def of(cls, error: Exception, text: str) -> Self:
        """This error for what the database said."""
        wrapped = cls(text)
        wrapped.sqlstate = find_sqlstate(error)
        return wrapped


class BrokerDataError(BrokerDatabaseError, DataError):
    """A value that the database cannot hold."""

    code = "database_data_error"


class BrokerUnavailable(BrokerDatabaseError, OperationalError):
    """The database cannot be reached, or has no connection to spare."""

    code = "database_unavailable"


class EnqueueConflict(BrokerDatabaseError, OperationalError):
    """Nothing was stored because of a concurrent transaction; roll back and run the whole transaction again."""

    code = "enqueue_conflict"


def find_sqlstate(error: BaseException) -> str | None:
    """The server's code behind a Django or psycopg error; decisions rest on it, never on the message's language."""
    for candidate in (error, error.__cause__):
        if state := getattr(candidate, "sqlstate", None):
            return str(state)
    return None


def is_passing(error: BaseException) -> bool:
    """Whether a concurrent transaction was in the way that is over now: the same may well succeed at once."""
    return find_sqlstate(error) in _CONFLICTS - {_LOCKED}


def wrap_database_error(error: DatabaseError | InterfaceError, purpose: str) -> BrokerDatabaseError:
    """The broker's error for one of Django's.

    Args:
        error: as caught.
        purpose: what was attempted, as the object of "could not".
    """
    if isinstance(error, BrokerDatabaseError):
        return error
    text = f"could not {purpose}: {error}".rstrip()
    sqlstate = find_sqlstate(error)
    if sqlstate == _LOCKED:
        return EnqueueConflict.of(
            error, f"{text}\nAnother transaction holds what this needs. Roll back and run the transaction again."
        )
    if sqlstate in _CONFLICTS:
        return EnqueueConflict.of(error, f"{text}\nRoll back and run the transaction again.")
    if sqlstate in _NOT_MIGRATED:
        return BrokerDatabaseError.of(error, f"{text}\nRun manage.py migrate on this database.")
    if sqlstate == _ABORTED or isinstance(error, TransactionManagementError):
        return BrokerDatabaseError.of(
            error,
            f"{text}\nAn earlier statement of this transaction failed. Leave its atomic block (or roll back) and run "
            "it again; to go on after an error that you expect, put that statement into an atomic block of its own.",
        )
    if isinstance(error, DataError):
        return BrokerDataError.of(error, text)
    if isinstance(error, OperationalError | InterfaceError):
        return BrokerUnavailable.of(error, text)
    return BrokerDatabaseError.of(error, text)
