"""Take pending jobs, each with a lease and a fencing token. Called in the worker's turn."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import psycopg

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.store.gateway import Gateway

#: Looks at the whole claim index.
NO_FLOOR = float("-inf")

_in_claim_order = attrgetter("claim_order", "id")


def send_claim_jobs(
    gateway: Gateway,
    *,
    queue_id: int,
    job_type_ids: str,
    batch: int,
    lease_seconds: float,
    worker_id: int,
    floor: float = NO_FLOOR,
) -> psycopg.Cursor[Any]:
    """Send the claim; in a pipeline its answer arrives with the transaction's end. See ``claim_jobs``."""
    return gateway.send(
        "claim_jobs",
        {
            "queue_id": queue_id,
            "job_type_ids": job_type_ids,
            "floor": floor,
            "batch": batch,
            "lease_seconds": lease_seconds,
            "worker_id": worker_id,
        },
    )


def read_claimed_jobs(cursor: psycopg.Cursor[Any]) -> list[ClaimedJob]:
    """The answer of a claim, in claim order."""
    claims = [ClaimedJob._make(row) for row in cursor.fetchall()]
    claims.sort(key=_in_claim_order)
    return claims


def claim_jobs(
    gateway: Gateway,
    *,
    queue_id: int,
    job_type_ids: Iterable[int],
    batch: int,
    lease_seconds: float,
    worker_id: int,
    floor: float = NO_FLOOR,
) -> list[ClaimedJob]:
    """Claim up to ``batch`` pending jobs of one queue, in claim order.

    Args:
        gateway: a connection of the broker's own.
        queue_id: the queue; a paused one gives nothing.
        job_type_ids: the types that may be taken.
        batch: the most jobs to take.
        lease_seconds: how long they may be held without a renewal.
        worker_id: who holds them.
        floor: epoch seconds of the lowest ``claim_order`` to look at.

    Raises:
        psycopg.OperationalError: the database is away; what it committed comes back when the lease lapses.
    """
    from_array = "{" + ",".join(map(str, job_type_ids)) + "}"
    return read_claimed_jobs(
        send_claim_jobs(
            gateway,
            queue_id=queue_id,
            job_type_ids=from_array,
            batch=batch,
            lease_seconds=lease_seconds,
            worker_id=worker_id,
            floor=floor,
        )
    )
