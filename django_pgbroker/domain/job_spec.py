"""One job as it is stored: everything decided, nothing left to look up but the ids of its names. Made by enqueue."""

from typing import NamedTuple

from django_pgbroker.domain.options import NOT_GIVEN, Instant


class JobSpec(NamedTuple):
    """What the enqueue statement needs beside the arguments.

    Args:
        available: when it may start; open means now.
        expires: latest start; open means never.
        deadline: latest finish; open means never.
    """

    queue: str
    job_type: str
    tenant: str
    version: int
    priority: int
    max_attempts: int
    timeout_seconds: int
    available: Instant
    expires: Instant
    deadline: Instant
    correlation_id: str | None
    created_by: str | None

    @property
    def is_timed(self) -> bool:
        """Whether a start, an expiry or a deadline is given."""
        return (self.available, self.expires, self.deadline) != _UNTIMED


_UNTIMED = (NOT_GIVEN, NOT_GIVEN, NOT_GIVEN)
