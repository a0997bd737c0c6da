"""What the tests of the commands have at hand."""

from tests.maintenance.connections import rival, rows
from tests.operations.conftest import sqlite_alias, unmigrated_alias

__all__ = ["rival", "rows", "sqlite_alias", "unmigrated_alias"]
