"""Databases of their own, which a role without any privilege owns."""

from collections.abc import Iterator
from secrets import token_hex
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.drills.crew import Crew
from tests.migrations.conftest import newest_params

__all__ = ["newest_params"]


@pytest.fixture
def owned_database(newest_params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An empty database as an entry of ``DATABASES``; its user owns it and is no superuser."""
    name = f"pgbroker_{token_hex(6)}"
    with psycopg.connect(**newest_params, dbname="postgres", autocommit=True) as connection:
        for text in ("create role {} login nosuperuser nocreatedb nocreaterole", "create database {0} owner {0}"):
            connection.execute(sql.SQL(text).format(sql.Identifier(name)))
        yield {
            "ENGINE": "django.db.backends.postgresql", "NAME": name, "USER": name,
            "HOST": str(newest_params.get("host", "")), "PORT": str(newest_params.get("port", "")),
        }  # fmt: skip
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.fixture
def owner_crew(owned_database: dict[str, Any]) -> Iterator[Crew]:
    """Processes that work as the owner."""
    crew = Crew(owned_database)
    yield crew
    crew.end()
    crew.show()
