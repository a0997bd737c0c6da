"""Run the reviewed DDL of ``migrations/sql`` as a migration operation, or at once where migrations are switched off."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from django.apps import apps
from django.contrib.auth.management import create_permissions
from django.db import DatabaseError, router, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

_FOLDER = Path(__file__).parent / "sql"
_REVERSE = ".reverse.sql"

#: Waiting longer for a table lock would stall every claim that queues up behind the waiter.
LOCK_TIMEOUT = "set local lock_timeout = '3s'"

#: One migrator at a time and database. Taken before the lock timeout, which would count for it too.
MIGRATE_LOCK = int.from_bytes(b"pgbroker")


class SchemaChange(RunSQL):
    """One reviewed change of the schema: ``sql/<name>.sql`` forwards and ``sql/<name>.reverse.sql`` backwards.

    Does nothing on a database that is not PostgreSQL, and nothing when another process has just done it.

    Args:
        file: name of the files without their suffixes.
        migration: name of the migration that holds this operation.
        state_operations: what Django's state is to know of the change.
    """

    def __init__(self, file: str, migration: str, state_operations: Sequence[Operation] = ()) -> None:
        super().__init__(
            sql=(_FOLDER / f"{file}.sql").read_text(encoding="utf-8"),
            reverse_sql=(_FOLDER / f"{file}{_REVERSE}").read_text(encoding="utf-8"),
            state_operations=list(state_operations),
        )
        self.file = file
        self.migration = migration

    def describe(self) -> str:
        """What ``migrate --plan`` says."""
        return f"Reviewed DDL sql/{self.file}.sql"

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Apply the change, unless the database is another one or it was applied meanwhile."""
        if self._is_due(app_label, schema_editor, applied=False):
            run_ddl(schema_editor, str(self.sql))
            if not schema_editor.collect_sql:
                add_permissions(app_label, schema_editor.connection.alias)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Undo the change, unless the database is another one or it was undone meanwhile."""
        if self._is_due(app_label, schema_editor, applied=True):
            run_ddl(schema_editor, str(self.reverse_sql))

    def _is_due(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, applied: bool) -> bool:
        connection = schema_editor.connection
        if connection.vendor != "postgresql" or not router.allow_migrate(connection.alias, app_label):
            return False
        if schema_editor.collect_sql:
            return True
        schema_editor.execute(f"select pg_advisory_xact_lock({MIGRATE_LOCK})", params=None)
        recorded = (app_label, self.migration) in MigrationRecorder(connection).applied_migrations()
        return recorded is applied


def run_ddl(schema_editor: BaseDatabaseSchemaEditor, ddl: str) -> None:
    """Run a script under a lock timeout, as one string without parameters so that ``%`` means itself."""
    schema_editor.execute(LOCK_TIMEOUT, params=None)
    schema_editor.execute(ddl, params=None)


def add_permissions(app_label: str, alias: str) -> None:
    """Add the content types and permissions of our models while the lock is held.

    Django adds them after migrate without any lock, and of several migrators at once all but one would fail there.
    Where their tables are not ready yet, that later moment has to do.
    """
    with suppress(DatabaseError), transaction.atomic(alias):
        create_permissions(apps.get_app_config(app_label), verbosity=0, interactive=False, using=alias)


def forward_scripts() -> list[str]:
    """The DDL of all migrations, in their order, for a database that is built without them."""
    files = sorted(path for path in _FOLDER.glob("*.sql") if not path.name.endswith(_REVERSE))
    return [path.read_text(encoding="utf-8") for path in files]
