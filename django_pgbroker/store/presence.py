"""Rows of workers that went silent. Called by the presence duty; jobs come back by their lease, never by these rows."""

from typing import NamedTuple

from django_pgbroker.store.gateway import Gateway


class LostWorker(NamedTuple):
    """A worker that missed five of its own heartbeats."""

    id: int
    name: str
    silent_seconds: float


def mark_lost_workers(gateway: Gateway, batch: int) -> list[LostWorker]:
    """Mark up to ``batch`` silent workers as stopped, with the reason ``lost``.

    A worker that was only slow takes the mark off with its next heartbeat.

    Raises:
        psycopg.Error: as the server answered; nothing is marked.
    """
    return [LostWorker(*row) for row in gateway.fetch("mark_lost_workers", {"batch": batch})]


def prune_workers(gateway: Gateway, batch: int) -> int:
    """Delete up to ``batch`` workers that stopped seven days ago or earlier, and return how many.

    Raises:
        psycopg.Error: as the server answered; nothing is deleted.
    """
    return gateway.execute("prune_workers", {"batch": batch})
