"""How many connections the server grants. Called by a worker command before it starts."""

from typing import NamedTuple

from django_pgbroker.store.gateway import CallerGateway


class ConnectionLimit(NamedTuple):
    """One limit, of the ``server``, the ``role`` or the ``database``: connections allowed, and in use by others."""

    kind: str
    name: str
    allowed: int
    used: int


def find_connection_limits(gateway: CallerGateway) -> list[ConnectionLimit]:
    """The limits that hold for the role of ``gateway``; the server's is always among them.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    return [ConnectionLimit(*row) for row in gateway.fetch("find_connection_limits")]
