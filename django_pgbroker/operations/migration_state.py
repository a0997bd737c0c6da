"""Whether the database has the migrations that this release knows, no less and no more. Read by the doctor."""

from dataclasses import dataclass

from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

_LABEL = "django_pgbroker"


@dataclass(frozen=True, slots=True)
class MigrationState:
    """Names of migrations, sorted.

    Args:
        missing: known to this code and not applied.
        unknown: applied, and not known to this code: the database belongs to a newer release.
        is_switched_off: the project does not use our migrations (``MIGRATION_MODULES``); the others are empty then.
        is_recorded: whether any of ours is recorded as applied; test databases built without migrations have none.
    """

    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    is_switched_off: bool = False
    is_recorded: bool = True


def read_migration_state(database: str) -> MigrationState:
    """Compare the migrations of this code with those applied in ``database``.

    Raises:
        django.db.DatabaseError: the database is away, or the role may not read Django's table of migrations.
    """
    loader = MigrationLoader(None, ignore_no_migrations=True)
    if _LABEL in loader.unmigrated_apps:
        return MigrationState(is_switched_off=True)
    known = {name for label, name in loader.disk_migrations if label == _LABEL}
    recorder = MigrationRecorder(connections[database])
    applied = {name for label, name in recorder.applied_migrations() if label == _LABEL}
    return MigrationState(tuple(sorted(known - applied)), tuple(sorted(applied - known)), is_recorded=bool(applied))
