"""A crew on the test database, and one on a server of its own that may be stopped."""

from collections.abc import Iterator

import pytest
from django.db import connection

from tests.drills.crew import Crew
from tests.scenarios.processes import database_of_this_run
from tests.shell.clones import Clone


@pytest.fixture
def crew(broker_database: None) -> Iterator[Crew]:
    made = Crew(database_of_this_run())
    yield made
    made.end()
    made.show()
    with connection.cursor() as cursor:
        cursor.execute("drop table effect, gate")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    clone = Clone(tmp_path_factory.mktemp("drills") / "server")
    clone.attach()
    yield clone
    clone.remove()


@pytest.fixture
def server_crew(server: Clone) -> Iterator[Crew]:
    """On an empty database of the private server."""
    database = {
        "ENGINE": "django.db.backends.postgresql", "NAME": "pgbroker", "USER": "postgres",
        "HOST": str(server.place.sockets), "PORT": "5432",
    }  # fmt: skip
    made = Crew(database)
    made.run("drop schema if exists pgbroker cascade; drop table if exists django_migrations")
    made.run("truncate effect, gate")
    migrate = made.start("migrate", "django_pgbroker", "--verbosity", "0")
    assert migrate.wait(60) == 0, migrate.output
    made.processes.clear()
    yield made
    made.end()
    made.show()
