"""Bring the jobs of a queue into the order that its ageing says, in bounded batches. Called by ``set_queue``."""

import time
from typing import NamedTuple

from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.queue_order import find_job_writers, reorder_jobs

#: Jobs that one statement looks at: some ten milliseconds.
_BATCH = 5_000

#: Before each pass it waits so long for transactions that may have used the old ageing. Most have ended after the first
#: pass, which is for the many.
_PATIENCE_SECONDS = (0.0, 10.0, 1.0)

_GLANCE_SECONDS = 0.1


class Reordering(NamedTuple):
    """How many jobs have moved, and whether none can be left in the old order."""

    moved: int
    is_complete: bool


def reorder_queue(gateway: CallerGateway, queue: str) -> Reordering:
    """Bring all jobs of a queue into order. Outside a transaction each batch is committed; it can be done again.

    A transaction that enqueued before the new ageing was committed shows its jobs when it commits, and a row that is
    locked is left out. So passes are made until one found nothing locked and began when all those transactions had
    ended. Inside the caller's transaction others go on with the old ageing: there is one pass, and it is not complete.

    Args:
        gateway: the caller's.
        queue: its name.

    Raises:
        django.db.DatabaseError: as the server answered; the batches before it stay.
    """
    if gateway.is_in_transaction:
        moved, _ = _pass_over(gateway, queue)
        return Reordering(moved, is_complete=False)
    writers, total = find_job_writers(gateway), 0
    for seconds in _PATIENCE_SECONDS:
        writers = _wait_for(gateway, writers, seconds)
        moved, left = _pass_over(gateway, queue)
        total += moved
        if not (writers or left):
            return Reordering(total, is_complete=True)
        if left:
            writers |= find_job_writers(gateway)
    return Reordering(total, is_complete=False)


def _wait_for(gateway: CallerGateway, writers: frozenset[str], seconds: float) -> frozenset[str]:
    """Wait for the end of these transactions; those that go on for longer."""
    until = time.monotonic() + seconds
    while writers and (writers := writers & find_job_writers(gateway)) and time.monotonic() < until:
        time.sleep(_GLANCE_SECONDS)
    return writers


def _pass_over(gateway: CallerGateway, queue: str) -> tuple[int, int]:
    """Look at all live jobs once: how many have moved, and how many should have."""
    moved = left = 0
    last_id: int | None = 0
    while last_id is not None:
        batch = reorder_jobs(gateway, queue, last_id, _BATCH)
        moved += batch.moved
        left += batch.astray - batch.moved
        last_id = batch.last_id
    return moved, left
