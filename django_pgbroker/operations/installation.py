"""Make a migrated database ready for work: partitions, the default tenant, and the names that the code declares."""

from django.db import connections
from psycopg.errors import LockNotAvailable

from django_pgbroker import telemetry
from django_pgbroker.conf import get_settings
from django_pgbroker.runtime.new_names import declare_names
from django_pgbroker.store.gateway import CallerGateway, Gateway
from django_pgbroker.store.partitions import ensure_partitions


def is_installed(alias: str) -> bool:
    """Whether the tables of the broker exist in the database of ``alias``."""
    return bool(CallerGateway(alias).fetch("is_installed")[0][0])


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
