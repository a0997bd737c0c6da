"""Projects that are built otherwise: several aliases, sqlite, migrations switched off, test databases of both kinds."""

import pytest
from django.core.management import call_command
from pytest_django.fixtures import Settings

from tests.migrations.conftest import SQLITE, WITHOUT_MIGRATIONS, Database, Project, as_alias
from tests.migrations.test_migrate import TABLES

BUILD_TEST_DATABASES = """
import django
django.setup()
from django.db import connections
from django.test.utils import setup_databases, teardown_databases
aliases = {"default", "other"}
made = setup_databases(verbosity=0, interactive=False, aliases=aliases, serialized_aliases=aliases)
with connections["default"].cursor() as cursor:
    cursor.execute("select count(*) from pgbroker.tenant")
    print("tenants:", cursor.fetchone()[0])
print("in sqlite:", connections["other"].introspection.table_names())
teardown_databases(made, verbosity=0)
"""


class KeepAway:
    """A database router that wants no table of the broker anywhere."""

    def allow_migrate(self, db: str, app_label: str, **_: object) -> bool | None:
        return False if app_label == "django_pgbroker" else None


@pytest.mark.usefixtures("database")
def test_on_sqlite_migrate_does_nothing_forwards_and_backwards(tmp_path) -> None:
    with as_alias({**SQLITE, "NAME": str(tmp_path / "other.sqlite3")}) as alias:
        for target in ([], ["zero"], []):
            call_command("migrate", "django_pgbroker", *target, database=alias, verbosity=0)

        from django.db import connections

        assert connections[alias].introspection.table_names() == ["django_migrations"]


def test_the_test_databases_of_both_kinds_are_built(project: Project) -> None:
    project.apps = ["django.contrib.contenttypes", "django_pgbroker"]
    project.configure(other=SQLITE)

    shown = project.run("-c", BUILD_TEST_DATABASES)

    assert "tenants: 1" in shown
    assert "in sqlite: ['django_content_type', 'django_migrations']" in shown


def test_the_test_databases_of_both_kinds_are_built_without_migrations(project: Project) -> None:
    project.apps = ["django.contrib.contenttypes", "django_pgbroker"]
    project.configure(
        default=project.database.settings(TEST={"MIGRATE": False}), other={**SQLITE, "TEST": {"MIGRATE": False}}
    )

    shown = project.run("-c", BUILD_TEST_DATABASES)

    assert "tenants: 1" in shown
    assert "in sqlite: ['django_content_type']" in shown


def test_a_project_that_switches_our_migrations_off_has_the_schema_all_the_same(
    database_on_each_server: Database, settings: Settings
) -> None:
    database = database_on_each_server
    settings.MIGRATION_MODULES = WITHOUT_MIGRATIONS

    with as_alias(database.settings()) as alias:
        for _ in range(2):
            call_command("migrate", "contenttypes", database=alias, verbosity=0)

    assert database.tables() == TABLES
    assert len(database.partitions()) >= 3


@pytest.mark.parametrize("modules", [{}, WITHOUT_MIGRATIONS], ids=["migrations on", "migrations off"])
def test_a_router_that_keeps_the_broker_away_is_obeyed(
    database: Database, settings: Settings, modules: dict[str, None]
) -> None:
    settings.DATABASE_ROUTERS = [f"{__name__}.KeepAway"]
    settings.MIGRATION_MODULES = modules

    with as_alias(database.settings()) as alias:
        call_command("migrate", "contenttypes" if modules else "django_pgbroker", database=alias, verbosity=0)

    assert database.tables() == set()
