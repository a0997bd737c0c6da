"""What the tests of the worker have at hand."""

from tests.maintenance.connections import gateway, rival, rows
from tests.worker.handlers import declare, gate
from tests.worker.workers import quick_settings, run_until_empty, start

__all__ = ["declare", "gate", "gateway", "quick_settings", "rival", "rows", "run_until_empty", "start"]
