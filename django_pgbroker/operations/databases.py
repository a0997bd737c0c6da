"""Reach the broker's tables by the alias that a caller names. Used by every operation."""

from django.db import connections

from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.domain.names import suggest
from django_pgbroker.store.gateway import CallerGateway


def open_caller_gateway(alias: str) -> CallerGateway:
    """A gateway on the caller's connection.

    Args:
        alias: a key of ``settings.DATABASES``.

    Raises:
        ConfigurationError: there is no such alias, or it is not PostgreSQL.
    """
    if alias not in connections.settings:
        raise ConfigurationError(f"{alias!r} is no alias in DATABASES. {suggest(alias, connections.settings)}".rstrip())
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise ConfigurationError(f"the database {alias!r} is {connection.vendor}; jobs are stored in PostgreSQL only")
    return CallerGateway(alias, connection)
