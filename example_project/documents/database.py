"""Whether the demo's database can be used, in one line for people. Used by the demo."""

import os

from django.core.management import call_command
from django.db import Error, connection


class DatabaseUnusable(Exception):
    """The database cannot be used; the text says what is wrong and what to do next."""


class DatabaseStopped(DatabaseUnusable):
    """The database was there and is gone."""

    def __init__(self) -> None:
        super().__init__("the database was stopped, and the demo with it. Next: start the demo again.")


def migrate() -> None:
    """Connect and run the migrations.

    Raises:
        DatabaseUnusable: the server does not answer, refuses us, or refuses the migrations.
    """
    try:
        connection.ensure_connection()
    except Error as error:
        raise DatabaseUnusable(_explain("cannot be reached", error)) from error
    try:
        call_command("migrate", verbosity=0, interactive=False)
    except Error as error:
        raise DatabaseUnusable(_explain("cannot be migrated", error)) from error


def database_answers() -> bool:
    """Whether the database answers; a connection that was cut is made anew."""
    try:
        if not connection.is_usable():
            connection.close()
            connection.ensure_connection()
    except Error:
        return False
    return True


def _explain(what: str, error: Error) -> str:
    reason = " ".join(str(error).split())
    if not os.environ.get("DATABASE_URL") and not os.environ.get("DATABASE_URL_FILE"):
        return f"the database {what}: {reason}"
    return (
        f"the database that DATABASE_URL names {what}: {reason}. Next: correct role, host, port or database in it, "
        "or unset it to use the embedded server."
    )
