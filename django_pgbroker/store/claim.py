"""Take pending jobs, each with a lease and a fencing token. Called in the worker's turn."""

from collections.abc import Iterable
from typing import Any

import psycopg

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.store.gateway import Gateway

#: Looks at the whole claim index.
NO_FLOOR = float("-inf")


def _in_starting_order(claim: ClaimedJob) -> tuple[bool, float, int]:
    return not claim.has_begun, claim.claim_order, claim.id


def send_claim_jobs(
    gateway: Gateway,
    *,
    queue_id: int,
    job_type_ids: str,
    batch: int,
    begin: int,
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
            "begin": begin,
            "lease_seconds": lease_seconds,
            "worker_id": worker_id,
        },
    )


def read_claimed_jobs(cursor: psycopg.Cursor[Any]) -> list[ClaimedJob]:
    """The answer of a claim: what begins at once, then what waits, each in claim order."""
    claims = [ClaimedJob._make(row) for row in cursor.fetchall()]
    claims.sort(key=_in_starting_order)
    return claims


def claim_jobs(
    gateway: Gateway,
    *,
    queue_id: int,
    job_type_ids: Iterable[int],
    batch: int,
    lease_seconds: float,
    worker_id: int,
    begin: int | None = None,
    floor: float = NO_FLOOR,
) -> list[ClaimedJob]:
    """Claim up to ``batch`` pending jobs of one queue: what begins at once, then what waits, each in claim order.

    Args:
        gateway: a connection of the broker's own.
        queue_id: the queue; a paused one gives nothing.
        job_type_ids: the types that may be taken.
        batch: the most jobs to take.
        lease_seconds: how long they may be held without a renewal.
        worker_id: who holds them.
        begin: how many of them begin at once, by default all; the others cost no attempt when their worker dies.
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
            begin=batch if begin is None else begin,
            lease_seconds=lease_seconds,
            worker_id=worker_id,
            floor=floor,
        )
    )
