"""What the tests of the commands have at hand."""

from tests.maintenance.connections import rival, rows
from tests.operations.conftest import known_job_types, sqlite_alias, unmigrated_alias

__all__ = ["known_job_types", "rival", "rows", "sqlite_alias", "unmigrated_alias"]
