"""Pause and resume a queue, with the audit entry in the same statement. Called by ``operations.queues`` and a duty."""

from django_pgbroker.domain.options import NOT_GIVEN, Instant
from django_pgbroker.store.gateway import CallerGateway, Gateway


def pause_queue(  # noqa: PLR0917
    gateway: CallerGateway, queue: str, actor: str, source: str, reason: str | None, until: Instant = NOT_GIVEN
) -> bool:
    """Pause a queue, or replace its pause; False when it is paused in just this way already or does not exist.

    Raises:
        django.db.DatabaseError: as the server answered; nothing has changed.
    """
    params = {
        "queue": queue,
        "actor": actor,
        "source": source,
        "reason": reason,
        "resume_at": until.at,
        "resume_seconds": until.seconds,
    }
    return bool(gateway.fetch_guarded("pause_queue", params))


def resume_queue(gateway: CallerGateway, queue: str, actor: str, source: str, reason: str | None) -> bool:
    """Resume a queue; False when it is not paused or does not exist.

    Raises:
        django.db.DatabaseError: as the server answered; nothing has changed.
    """
    params = {"queue": queue, "actor": actor, "source": source, "reason": reason}
    return bool(gateway.fetch_guarded("resume_queue", params))


def resume_due_queues(gateway: Gateway, *, actor: str, source: str, reason: str) -> list[str]:
    """Resume all queues whose pause was to end by now, and name them.

    Raises:
        psycopg.Error: as the server answered; nothing has changed.
    """
    params = {"actor": actor, "source": source, "reason": reason}
    return [str(name) for (name,) in gateway.fetch("resume_due_queues", params)]
