"""What the tests of the commands have at hand."""

from tests.maintenance.connections import rival, rows

__all__ = ["rival", "rows"]
