"""What the tests of the duties have at hand."""

from tests.maintenance.connections import gateway, heard, rival, rows

__all__ = ["gateway", "heard", "rival", "rows"]
