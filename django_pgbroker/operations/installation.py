"""Make a migrated database ready for work: partitions, the default tenant, and the names that the code declares."""

from django.db import connections
from psycopg.errors import LockNotAvailable

from django_pgbroker import telemetry
from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.runtime.new_names import declare_names
from django_pgbroker.store.gateway import CallerGateway, Gateway
from django_pgbroker.store.partitions import ensure_partitions


def is_installed(alias: str) -> bool:
    """Whether the tables of the broker exist in the database of ``alias``."""
    return bool(CallerGateway(alias).fetch("is_installed")[0][0])


def require_installed(alias: str) -> None:
    """Refuse a database that cannot hold jobs, or has no tables for them yet.

    Raises:
        ConfigurationError: there is no such alias, it is not PostgreSQL, or migrate has not run there.
        django.db.DatabaseError, django.db.InterfaceError: the database is away.
    """
    open_caller_gateway(alias)
    if not is_installed(alias):
        raise ConfigurationError(
            f"the database {alias!r} cannot be used: it has no tables of the broker. Run manage.py migrate "
            f"--database {alias} first"
        )


def prepare_database(alias: str) -> None:
    """Create what the tables need before the first job, as far as it is missing. Called after every migrate.

    Raises:
        ConfigurationError: ``settings.PGBROKER`` is wrong.
        django.db.DatabaseError: as the server answered.
    """
    declare_names(alias)
    _prepare_partitions(alias)


def _prepare_partitions(alias: str) -> None:
    settings = get_settings()
    connection = connections[alias]
    connection.ensure_connection()
    try:
        ensure_partitions(Gateway(connection.connection), settings.partition_period, settings.partition_days_ahead)
    except LockNotAvailable:
        telemetry.warning(
            "partitions.delayed",
            "a long transaction reads the history, so partitions were not created now; the workers will create them",
            database=alias,
        )
