"""Give orders to a worker, in its row. Called by ``operations.workers``."""

import json
from dataclasses import dataclass
from typing import Any

from django_pgbroker.store.gateway import CallerGateway


@dataclass(frozen=True)
class Standing:
    """What a worker serves and was asked to do, by its row.

    Args:
        name: of the worker.
        end: why it has ended; None while it runs.
        queues: that it serves.
        drain: whether it is to finish what runs.
        stop: whether it is to stop at once.
        ordered_concurrency: how many it is to run at once; None for as many as at its start.
        paused_queues: that it is to leave.
    """

    name: str
    end: str | None
    queues: tuple[str, ...]
    drain: bool
    stop: bool
    ordered_concurrency: int | None
    paused_queues: tuple[str, ...]


def hold_worker(gateway: CallerGateway, worker_id: int) -> Standing | None:
    """Keep the row of a worker until the transaction ends; None where there is none.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    rows = gateway.fetch_guarded("hold_worker", {"worker_id": worker_id})
    if not rows:
        return None
    name, end, queues, drain, stop, ordered, paused = rows[0]
    return Standing(name, end, _read(queues), drain, stop, ordered, _read(paused))


def order_worker(gateway: CallerGateway, worker_id: int, wanted: Standing) -> None:
    """Write the orders into the row that ``hold_worker`` keeps.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    params = {
        "worker_id": worker_id,
        "drain": wanted.drain,
        "stop": wanted.stop,
        "concurrency": wanted.ordered_concurrency,
        "paused_queues": json.dumps(wanted.paused_queues),
    }
    gateway.execute("order_worker", params)


def _read(names: Any) -> tuple[str, ...]:
    """Names from jsonb, which connections of Django answer as text."""
    return tuple(json.loads(names) if isinstance(names, str) else names)
