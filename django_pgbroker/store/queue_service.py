"""Whether anybody takes the jobs of a queue. Called by ``operations.bulk_job``."""

from django_pgbroker.store.gateway import CallerGateway


def find_queue_service(gateway: CallerGateway, queue: str) -> tuple[bool, bool]:
    """Whether a queue is paused, and whether a live worker serves it.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    [(is_paused, is_served)] = gateway.fetch("find_queue_service", {"queue": queue})
    return is_paused, is_served
