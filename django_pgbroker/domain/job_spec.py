"""One job as it is stored: everything decided, nothing left to look up but the ids of its names. Made by enqueue."""

from typing import NamedTuple

from django_pgbroker.domain.options import Instant


class JobSpec(NamedTuple):
    """What the enqueue statement needs.

    Args:
        arguments: JSON text.
        available: when it may start; open means now.
        expires: latest start; open means never.
        deadline: latest finish; open means never.
    """

    queue: str
    job_type: str
    tenant: str
    arguments: str
    version: int
    priority: int
    max_attempts: int
    timeout_seconds: int
    available: Instant
    expires: Instant
    deadline: Instant
    correlation_id: str | None
    created_by: str | None
