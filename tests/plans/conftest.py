"""What these tests share with those of the statements and of the worker."""

from tests.maintenance.connections import gateway, rival, rows
from tests.store.conftest import move_clock, shop
from tests.worker.handlers import declare, gate
from tests.worker.workers import quick_settings, run_until_empty, start

__all__ = [
    "declare",
    "gate",
    "gateway",
    "move_clock",
    "quick_settings",
    "rival",
    "rows",
    "run_until_empty",
    "shop",
    "start",
]
