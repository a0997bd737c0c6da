"""Pause and resume a queue, with the audit entry in the same statement. Called by ``operations.queues``."""

from django_pgbroker.store.gateway import CallerGateway


def pause_queue(gateway: CallerGateway, queue: str, actor: str, source: str, reason: str | None) -> bool:
    """Pause a queue; False when it is paused already or does not exist.

    Raises:
        django.db.DatabaseError: as the server answered; nothing has changed.
    """
    params = {"queue": queue, "actor": actor, "source": source, "reason": reason}
    return bool(gateway.fetch_guarded("pause_queue", params))


def resume_queue(gateway: CallerGateway, queue: str, actor: str, source: str, reason: str | None) -> bool:
    """Resume a queue; False when it is not paused or does not exist.

    Raises:
        django.db.DatabaseError: as the server answered; nothing has changed.
    """
    params = {"queue": queue, "actor": actor, "source": source, "reason": reason}
    return bool(gateway.fetch_guarded("resume_queue", params))
