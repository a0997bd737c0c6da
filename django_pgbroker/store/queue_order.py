"""Change the ageing of a queue, and bring its jobs into the new order. Called by ``operations.queue_settings``."""

from typing import NamedTuple

from django_pgbroker.store.gateway import CallerGateway


class Reordered(NamedTuple):
    """What one batch came to: the id it ended with (None: nothing was left), jobs out of place, and those moved."""

    last_id: int | None
    astray: int
    moved: int


def set_queue_ageing(  # noqa: PLR0917
    gateway: CallerGateway, queue: str, ageing_seconds: int, actor: str, source: str, reason: str | None
) -> bool:
    """Change it, with the audit entry; False when it is so already or the queue does not exist.

    Raises:
        django.db.DatabaseError: as the server answered; nothing has changed.
    """
    params = {"queue": queue, "ageing_seconds": ageing_seconds, "actor": actor, "source": source, "reason": reason}
    return bool(gateway.fetch_guarded("set_queue_ageing", params))


def reorder_jobs(gateway: CallerGateway, queue: str, after: int, batch: int) -> Reordered:
    """Bring jobs of the queue into order, among the next ``batch`` jobs behind the id ``after``.

    Raises:
        django.db.DatabaseError: as the server answered; nothing has changed.
    """
    [row] = gateway.fetch_guarded("reorder_jobs", {"queue": queue, "after": after, "batch": batch})
    return Reordered(*row)


def find_job_writers(gateway: CallerGateway) -> frozenset[str]:
    """The other transactions that have written or locked jobs and have not ended.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    return frozenset(str(transaction) for (transaction,) in gateway.fetch_guarded("find_job_writers"))
