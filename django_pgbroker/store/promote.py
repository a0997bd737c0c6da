"""Make scheduled jobs pending when they are due. Called by the promoter duty and by workers that look for work."""

from typing import Any

import psycopg

from django_pgbroker.domain.records import Promotion
from django_pgbroker.store.gateway import Gateway


def send_promote_jobs(gateway: Gateway, queue_id: int, batch: int) -> psycopg.Cursor[Any]:
    """Send the promotion; in a pipeline its answer arrives with the transaction's end. See ``promote_jobs``."""
    return gateway.send("promote_jobs", {"queue_id": queue_id, "batch": batch})


def read_promotion(cursor: psycopg.Cursor[Any]) -> Promotion:
    """The answer of a promotion."""
    row = cursor.fetchone()
    return Promotion._make(row) if row else Promotion(0, None)


def promote_jobs(gateway: Gateway, queue_id: int, batch: int) -> Promotion:
    """Move up to ``batch`` due jobs of one queue from scheduled to pending."""
    return read_promotion(send_promote_jobs(gateway, queue_id, batch))
