"""What happens around ``migrate``: a schema where migrations are switched off, then partitions and declared names."""

from typing import Any

from django.apps import AppConfig
from django.db import connections, router
from django.db.migrations.loader import MigrationLoader

from django_pgbroker.migrations._schema_change import MIGRATE_LOCK, forward_scripts, run_ddl
from django_pgbroker.operations.installation import is_installed, prepare_database


def build_unmigrated_schema(*, sender: AppConfig, using: str, **_: Any) -> None:
    """Run the DDL at once in a project that switches our migrations off (``--nomigrations``, ``MIGRATION_MODULES``)."""
    if not _is_ours(sender, using):
        return
    if sender.label in MigrationLoader(None, ignore_no_migrations=True).migrated_apps:
        return
    with connections[using].schema_editor() as schema_editor:
        schema_editor.execute(f"select pg_advisory_xact_lock({MIGRATE_LOCK})", params=None)
        if not is_installed(using):
            for script in forward_scripts():
                run_ddl(schema_editor, script)


def prepare_migrated_schema(*, sender: AppConfig, using: str, **_: Any) -> None:
    """Make the database ready for work, unless it has no tables of ours, as after a migration backwards."""
    if _is_ours(sender, using) and is_installed(using):
        prepare_database(using)


def _is_ours(sender: AppConfig, using: str) -> bool:
    return connections[using].vendor == "postgresql" and router.allow_migrate(using, sender.label)
