"""Fresh databases on the server of the tests and on the oldest one, and small projects in a process of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import environ
import psycopg
import pytest
from django.core.management import call_command
from django.db import connections
from psycopg import sql

ROOT = Path(__file__).parents[2]
OLDEST = os.environ.get("DATABASE_URL_OLDEST", "postgres://postgres@127.0.0.1:5432/postgres")
SECONDS = 60
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
WITHOUT_MIGRATIONS = {"django_pgbroker": None}

SETTINGS = """
SECRET_KEY = "for-tests-only"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = {apps!r}
DATABASES = {databases!r}
"""


@dataclass(frozen=True)
class Database:
    """One database of a server, for Django as an entry of DATABASES."""

    params: dict[str, Any]
    name: str

    def connect(self, **more: Any) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(**{**self.params, "dbname": self.name, "autocommit": True, **more})

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        with self.connect() as connection:
            return connection.execute(statement).fetchall()

    def empty(self) -> None:
        """Make it as good as new; that is quicker than a new one."""
        with self.connect() as connection:
            connection.execute(
                "drop schema if exists pgbroker cascade; drop schema public cascade; create schema public;"
                "grant usage on schema public to public; alter default privileges revoke select on tables from public"
            )

    def settings(self, **more: Any) -> dict[str, Any]:
        keys = {"HOST": "host", "PORT": "port", "USER": "user", "PASSWORD": "password"}
        address = {key: str(self.params.get(param, "")) for key, param in keys.items()}
        return {"ENGINE": "django.db.backends.postgresql", "NAME": self.name, **address, **more}

    def migrate(self, *arguments: str, **settings: Any) -> None:
        """Run ``migrate django_pgbroker`` on this database, in this process.

        Args:
            arguments: further arguments of the command.
            settings: changes to the entry of DATABASES, such as ``USER``.
        """
        with as_alias(self.settings(**settings)) as alias:
            call_command("migrate", "django_pgbroker", *arguments, database=alias, verbosity=0)

    def tables(self) -> set[str]:
        """The tables of the broker, without partitions."""
        found = self.query(
            "select relname from pg_class join pg_namespace as n on n.oid = relnamespace"
            " where nspname = 'pgbroker' and relkind in ('r', 'p') and not relispartition"
        )
        return {name for (name,) in found}

    def partitions(self) -> set[str]:
        """The partitions of the executions."""
        parent = "'pgbroker.execution'::regclass"
        return {
            name
            for (name,) in self.query(f"select inhrelid::regclass::text from pg_inherits where inhparent = {parent}")
        }


@contextmanager
def as_alias(entry: dict[str, Any]) -> Iterator[str]:
    """Let Django know a database under an alias that exists only for the block."""
    alias = f"fresh_{token_hex(4)}"
    connections.settings[alias] = connections.configure_settings({"default": {}, alias: entry})[alias]
    try:
        yield alias
    finally:
        connections[alias].close()
        del connections[alias]
        del connections.settings[alias]


@dataclass
class Project:
    """A Django project in a folder of its own."""

    folder: Path
    database: Database
    apps: list[str] = field(default_factory=lambda: ["django_pgbroker"])

    def configure(self, **databases: dict[str, Any]) -> None:
        databases.setdefault("default", self.database.settings())
        text = SETTINGS.format(apps=self.apps, databases=databases)
        (self.folder / "project_settings.py").write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Python with the project's settings."""
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.folder}{os.pathsep}{ROOT}",
            "DJANGO_SETTINGS_MODULE": "project_settings",
        }
        return subprocess.Popen(
            [sys.executable, *arguments],
            env=environment,
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *arguments: str) -> str:
        """Run Python with the project's settings and return what it printed."""
        return finish(self.start(*arguments))


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for a process, a bounded time, and return what it printed; it must end well."""
    try:
        output, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        pytest.fail(f"still running after {SECONDS} s: {output}")
    assert process.returncode == 0, output
    return output


@pytest.fixture(scope="session")
def newest_params(django_db_blocker: Any) -> dict[str, Any]:
    """How to reach the server that the other tests run on."""
    wanted = ("host", "port", "user", "password")
    with django_db_blocker.unblock():
        params = connections["default"].get_connection_params()
    return {key: params[key] for key in wanted if params.get(key)}


@pytest.fixture(scope="session")
def oldest_params() -> dict[str, Any]:
    """How to reach the oldest supported server; without one the tests that want it are skipped."""
    config = environ.Env.db_url_config(OLDEST)
    given = {key.lower(): config[key] for key in ("HOST", "PORT", "USER", "PASSWORD")}
    params = {key: value for key, value in given.items() if value}
    try:
        psycopg.connect(**params, dbname="postgres", connect_timeout=3).close()
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL at DATABASE_URL_OLDEST: {error}")
    return params


@contextmanager
def fresh_database(params: dict[str, Any]) -> Iterator[Database]:
    """An empty database that is dropped at the end."""
    made = Database(params, f"pgbroker_{token_hex(6)}")
    name = sql.Identifier(made.name)
    with psycopg.connect(**params, dbname="postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("create database {} template template0").format(name))
        try:
            yield made
        finally:
            connection.execute(sql.SQL("drop database {} with (force)").format(name))


@pytest.fixture(scope="session")
def newest_database(newest_params: dict[str, Any]) -> Iterator[Database]:
    with fresh_database(newest_params) as made:
        yield made


@pytest.fixture(scope="session")
def oldest_database(oldest_params: dict[str, Any]) -> Iterator[Database]:
    with fresh_database(oldest_params) as made:
        yield made


@pytest.fixture
def database(newest_database: Database, django_db_blocker: Any) -> Iterator[Database]:
    """An empty database on the tests' server."""
    newest_database.empty()
    with django_db_blocker.unblock():
        yield newest_database


@pytest.fixture(params=["newest_database", "oldest_database"])
def database_on_each_server(request: pytest.FixtureRequest, django_db_blocker: Any) -> Iterator[Database]:
    """An empty database on the tests' server, and one on the oldest supported server."""
    made: Database = request.getfixturevalue(request.param)
    made.empty()
    with django_db_blocker.unblock():
        yield made


@pytest.fixture
def project(tmp_path: Path, database: Database) -> Project:
    """A project whose default database is an empty one."""
    made = Project(tmp_path, database)
    made.configure()
    return made
