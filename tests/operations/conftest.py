"""A second pair of eyes on the database, a second alias for it, and short ways to look."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from django_pgbroker.registry import registry
from django_pgbroker.runtime.connections import open_connection
from operations import jobs
from tests.maintenance.connections import rival

__all__ = ["rival"]


@pytest.fixture(autouse=True)
def known_job_types() -> Iterator[None]:
    for job_type in jobs.OURS:
        registry.register(job_type)
    yield
    for job_type in jobs.OURS:
        for name in (job_type.name, *job_type.aliases):
            registry.forget(name)


class Observer:
    """What other sessions see: committed rows only."""

    def __init__(self, own: psycopg.Connection[tuple[Any, ...]]) -> None:
        self.connection = own

    def job_ids(self) -> list[int]:
        return [row[0] for row in self.connection.execute("select id from pgbroker.job order by id").fetchall()]

    def value(self, query: str) -> Any:
        row = self.connection.execute(query).fetchone()
        return row and row[0]


@pytest.fixture
def observer(broker_database: None) -> Iterator[Observer]:
    connection.ensure_connection()
    with open_connection("default", "observer", lock_timeout="5s") as own:
        yield Observer(own)


@pytest.fixture
def second_alias(broker_database: None) -> Iterator[str]:
    """Another alias of the same test database, with a connection of its own."""
    connection.ensure_connection()
    yield from add_alias("second")


@pytest.fixture
def unmigrated_alias(broker_database: None) -> Iterator[str]:
    """A database of the same server without our tables."""
    connection.ensure_connection()
    yield from add_alias("unmigrated", NAME="postgres")


@pytest.fixture
def sqlite_alias() -> Iterator[str]:
    yield from add_alias("lite", ENGINE="django.db.backends.sqlite3", NAME=":memory:")


def add_alias(alias: str, **changes: Any) -> Iterator[str]:
    connections.settings[alias] = {**connections["default"].settings_dict, **changes}
    # Django's test case allows no alias that it does not know to open a connection by itself
    connections[alias].connect()
    try:
        yield alias
    finally:
        connections[alias].close()
        del connections[alias]
        del connections.settings[alias]
