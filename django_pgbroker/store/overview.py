"""What the overview needs beyond the models. Called by ``operations.overview``."""

from typing import NamedTuple

from django_pgbroker.domain.presence import LOST_AFTER_HEARTBEATS
from django_pgbroker.store.gateway import CallerGateway


class UnknownTypeRow(NamedTuple):
    """A job type with waiting jobs, and how many of those looked at are of it."""

    name: str
    waiting: int


class UntakenTypeRow(NamedTuple):
    """A job type that waits in a queue, and how many of the jobs looked at there are of it."""

    queue: str
    name: str
    waiting: int


def find_untaken_types(gateway: CallerGateway, batch: int) -> list[UntakenTypeRow]:
    """The job types that wait in a queue where no live worker takes them, though one does elsewhere, most work first.

    Args:
        gateway: the caller's connection.
        batch: how many rows are looked at in the head of each queue.
    """
    params = {"batch": batch, "lost_after": float(LOST_AFTER_HEARTBEATS)}
    return [UntakenTypeRow(*row) for row in gateway.fetch("find_untaken_types", params)]


def find_unknown_types(gateway: CallerGateway, batch: int) -> list[UnknownTypeRow]:
    """The job types with waiting work that no live worker takes, most work first; empty while no worker lives.

    Args:
        gateway: the caller's connection.
        batch: how many rows are looked at in the head of each queue, and among the parked jobs.
    """
    params = {"batch": batch, "lost_after": float(LOST_AFTER_HEARTBEATS)}
    return [UnknownTypeRow(*row) for row in gateway.fetch("find_unknown_types", params)]
