"""The schema comes and goes by ``migrate``, from several processes at once, on each supported server."""

import time
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import OperationalError, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from django_pgbroker import migrations
from django_pgbroker.migrations._schema_change import MIGRATE_LOCK, SchemaChange
from tests.migrations.conftest import Database, Project, as_alias, finish

TABLES = {
    model._meta.db_table.split('"')[3]
    for model in apps.get_app_config("django_pgbroker").get_models()
    if not model._meta.proxy
}


def test_migrate_goes_forwards_backwards_and_forwards_again(database_on_each_server: Database) -> None:
    database = database_on_each_server

    database.migrate()
    assert database.tables() == TABLES
    database.migrate()
    assert len(database.partitions()) >= 3
    assert database.query("select name from pgbroker.tenant") == [("default",)]

    database.migrate("zero")
    assert database.query("select to_regnamespace('pgbroker')::text") == [(None,)]

    database.migrate()
    assert database.tables() == TABLES


def test_three_migrates_at_once_all_succeed(project: Project) -> None:
    project.apps = ["django.contrib.contenttypes", "django.contrib.auth", "django_pgbroker"]
    project.configure()
    project.run("-m", "django", "migrate", "auth")

    with project.database.connect() as holder:
        holder.execute("select pg_advisory_lock(%s)", [MIGRATE_LOCK])
        migrates = [project.start("-m", "django", "migrate") for _ in range(3)]
        wait_until_waiting(project.database, 3)
        holder.execute("select pg_advisory_unlock(%s)", [MIGRATE_LOCK])
    for migrate in migrates:
        finish(migrate)

    assert project.database.tables() == TABLES
    assert project.database.query("select count(*) from pgbroker.tenant") == [(1,)]


def test_the_permissions_exist_before_the_lock_is_given_up(database: Database) -> None:
    """Else of several migrators at once all but one would fail at Django's own step after migrate."""
    with as_alias(database.settings()) as alias:
        call_command("migrate", "auth", database=alias, verbosity=0)
        with connections[alias].schema_editor() as schema_editor:
            executor = MigrationExecutor(connections[alias])
            state = executor.loader.project_state()
            [operation] = executor.loader.get_migration("django_pgbroker", "0001_initial").operations
            operation.database_forwards("django_pgbroker", schema_editor, state, state)

    found = database.query(
        "select codename from auth_permission join django_content_type as t on t.id = content_type_id"
        " where app_label = 'django_pgbroker' and codename like 'view%'"
    )
    assert len(found) == len(TABLES) + 1


def wait_until_waiting(database: Database, processes: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        [(waiting,)] = database.query(
            "select count(*) from pg_locks where locktype = 'advisory' and not granted"
            " and database = (select oid from pg_database where datname = current_database())"
        )
        if waiting == processes:
            return
        time.sleep(0.02)
    pytest.fail(f"{waiting} of {processes} processes wait for the lock")


def test_a_migrate_gives_up_rather_than_block_the_workers_behind_it(database: Database) -> None:
    database.migrate()

    with database.connect(autocommit=False) as reader:
        reader.execute("select count(*) from pgbroker.job")
        with pytest.raises(OperationalError, match="lock timeout"):
            database.migrate("zero")

    assert database.tables() == TABLES


def test_every_operation_of_every_migration_is_reviewed_ddl_under_the_lock_timeout() -> None:
    loader = MigrationLoader(None)
    ours = [migration for (app, _), migration in loader.disk_migrations.items() if app == "django_pgbroker"]

    assert ours
    for migration in ours:
        assert migration.operations
        for operation in migration.operations:
            assert type(operation) is SchemaChange
            assert operation.migration == migration.name


def test_every_script_is_named_after_its_migration_and_has_a_reverse() -> None:
    names = {path.name for path in (Path(migrations.__file__).parent / "sql").iterdir()}
    forwards = {name for name in names if not name.endswith(".reverse.sql")}

    assert {name.replace(".sql", ".reverse.sql") for name in forwards} == names - forwards


def test_sqlmigrate_shows_the_ddl_after_its_lock_timeout(database: Database) -> None:
    shown = StringIO()
    with as_alias(database.settings()) as alias:
        call_command("sqlmigrate", "django_pgbroker", "0001", database=alias, stdout=shown)

    assert "create table pgbroker.job (" in shown.getvalue()
    assert shown.getvalue().index("set local lock_timeout") < shown.getvalue().index("create table")


def test_objects_of_others_in_the_schema_survive_a_migration_backwards(database: Database) -> None:
    database.migrate()
    with database.connect() as connection:
        connection.execute("create table pgbroker.notes_of_the_dba ()")

    database.migrate("zero")

    assert database.tables() == {"notes_of_the_dba"}
    with database.connect() as connection, pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute("select from pgbroker.job")
