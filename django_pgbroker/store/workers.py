"""Presence of one worker process: register, beat, end. Called by the worker and its lease keeper."""

import json
from collections.abc import Iterable, Mapping

from django_pgbroker.domain.records import Orders
from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.gateway import Gateway


def register_worker(
    gateway: Gateway,
    *,
    name: str,
    hostname: str,
    process_id: int,
    version: str,
    queues: Mapping[str, int],
    job_type_ids: Iterable[int],
    concurrency: int,
    heartbeat_seconds: float,
) -> tuple[int, float]:
    """Make the presence row of this process; every start is a new row, whatever its name.

    Returns:
        The id of the row, and the time of the database in epoch seconds.
    """
    worker_id, epoch_seconds = gateway.fetch_one(
        "register_worker",
        {
            "name": name,
            "hostname": hostname,
            "process_id": process_id,
            "version": version,
            "queues": json.dumps(queues),
            "job_type_ids": array_of_integers(job_type_ids),
            "concurrency": concurrency,
            "heartbeat_seconds": heartbeat_seconds,
        },
    )
    return worker_id, epoch_seconds


def beat_worker(
    gateway: Gateway,
    worker_id: int,
    *,
    running_count: int,
    concurrency: int,
    wall_clock: float,
    is_draining: bool = False,
) -> Orders | None:
    """Say that the worker lives, and bring back what operators ask of it; None when its row is gone or is held.

    Args:
        gateway: a connection of the broker's own.
        worker_id: from ``register_worker``.
        running_count: handlers that run now.
        concurrency: how many can run at once.
        wall_clock: this process's own epoch seconds, so that a wrong clock can be shown.
        is_draining: whether it finishes what runs and takes nothing new.
    """
    params = {
        "worker_id": worker_id,
        "running_count": running_count,
        "concurrency": concurrency,
        "wall_clock": wall_clock,
        "is_draining": is_draining,
    }
    rows = gateway.fetch("beat_worker", params)
    if not rows:
        return None
    drain, stop, epoch_seconds, concurrency, paused_queues = rows[0]
    return Orders(drain, stop, epoch_seconds, concurrency, frozenset(paused_queues))


def end_worker(gateway: Gateway, worker_id: int, reason: str) -> None:
    """Say that the worker has ended, and why."""
    gateway.execute("end_worker", {"worker_id": worker_id, "reason": reason})


def end_backend(gateway: Gateway, process_id: int) -> None:
    """End the server process of a lost connection that had the same ``application_name``, and wait for its end."""
    gateway.execute("end_backend", {"process_id": process_id})


def find_left_types(gateway: Gateway, queue_id: int) -> list[str]:
    """The job types of pending jobs in a queue, among the first thousand."""
    return sorted(name for (name,) in gateway.fetch("find_left_types", {"queue_id": queue_id}))


def has_unfinished_work(gateway: Gateway, queue_id: int, job_type_ids: Iterable[int]) -> bool:
    """Whether a queue holds pending, scheduled or running jobs of these types."""
    params = {"queue_id": queue_id, "job_type_ids": array_of_integers(job_type_ids)}
    return bool(gateway.fetch_one("find_unfinished_work", params)[0])
