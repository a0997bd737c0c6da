"""Make scheduled jobs pending when they are due. Called by the promoter duty and by workers that look for work."""

from typing import Any

import psycopg

from django_pgbroker.domain.records import Promotion
from django_pgbroker.store.gateway import Gateway

#: Looks at all scheduled jobs of the queue.
NO_FLOOR = float("-inf")


def send_promote_jobs(gateway: Gateway, queue_id: int, batch: int, floor: float = NO_FLOOR) -> psycopg.Cursor[Any]:
    """Send the promotion; in a pipeline its answer arrives with the transaction's end. See ``promote_jobs``."""
    return gateway.send("promote_jobs", {"queue_id": queue_id, "batch": batch, "floor": floor})


def read_promotion(cursor: psycopg.Cursor[Any]) -> Promotion:
    """The answer of a promotion."""
    row = cursor.fetchone()
    return Promotion._make(row) if row else Promotion(0, None, None)


def promote_jobs(gateway: Gateway, queue_id: int, batch: int, floor: float = NO_FLOOR) -> Promotion:
    """Move up to ``batch`` due jobs of one queue from scheduled to pending.

    Args:
        gateway: a connection of the broker's own.
        queue_id: the queue.
        batch: the most jobs to move.
        floor: epoch seconds of the lowest ``available_at`` to look at.
    """
    return read_promotion(send_promote_jobs(gateway, queue_id, batch, floor))
