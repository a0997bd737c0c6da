"""Jobs of a type that no live worker knows. Called by the unknown types duty."""

from collections.abc import Iterable
from typing import NamedTuple

from django_pgbroker.store.arrays import array_of_texts
from django_pgbroker.store.gateway import Gateway

#: Pending rows looked at per queue, in claim order: only there do unknown jobs stand in the way of others.
_HEAD = 1_000


class Moved(NamedTuple):
    """How many jobs moved, under the name of their type or queue."""

    name: str
    jobs: int


def park_unknown_jobs(gateway: Gateway, batch: int, declared: Iterable[str] = ()) -> list[Moved]:
    """Park up to ``batch`` pending jobs of types that no worker has taken for a minute; the answer is by job type.

    Without any live worker nothing is parked.

    Args:
        gateway: a connection of the broker's own.
        batch: the most jobs to park.
        declared: names of job types that are known all the same: the code has them, and workers leave them out.

    Raises:
        psycopg.Error: as the server answered; nothing has moved.
    """
    params = {"batch": batch, "head": _HEAD, "declared": array_of_texts(declared)}
    return [Moved(*row) for row in gateway.fetch("park_unknown_jobs", params)]


def wake_known_jobs(gateway: Gateway, batch: int) -> list[Moved]:
    """Make up to ``batch`` such jobs pending again whose type a live worker knows by now; the answer is by queue.

    Raises:
        psycopg.Error: as the server answered; nothing has moved.
    """
    return [Moved(*row) for row in gateway.fetch("wake_known_jobs", {"batch": batch})]
