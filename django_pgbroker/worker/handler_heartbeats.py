"""Handlers that must show progress to keep their lease: those whose job type has a ``heartbeat_timeout``.

Filled by the executor and the handlers, asked by the lease keeper.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob


class _Watch(NamedTuple):
    claim: ClaimedJob
    timeout_seconds: float
    heard_at: float


class HandlerHeartbeats:
    """When each watched handler was heard of last; safe to use from any thread.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._watched: dict[int, _Watch] = {}
        self._told: set[int] = set()

    def begin(self, claim: ClaimedJob, timeout_seconds: float) -> None:
        """Watch the handler of this claim: it must be heard of at least this often."""
        self._watched[claim.lease_token] = _Watch(claim, timeout_seconds, self._clock())

    def beat(self, lease_token: int) -> None:
        """The handler of this claim lives and has got on; one that is not watched may say so too."""
        if watch := self._watched.get(lease_token):
            self._watched[lease_token] = watch._replace(heard_at=self._clock())

    def end(self, lease_token: int) -> None:
        """The handler has ended."""
        self._watched.pop(lease_token, None)
        self._told.discard(lease_token)

    def is_stalled(self, lease_token: int) -> bool:
        """Whether the handler of this claim has been silent for too long."""
        watch = self._watched.get(lease_token)
        return watch is not None and self._clock() - watch.heard_at > watch.timeout_seconds

    def leave_out_stalled(self, claims: list[ClaimedJob]) -> list[ClaimedJob]:
        """The claims whose lease is to be renewed; that of a stalled handler is left to lapse, and told once."""
        if not self._watched:
            return claims
        stalled = {claim.lease_token for claim in claims if self.is_stalled(claim.lease_token)}
        for token in stalled - self._told:
            self._tell(token)
        return [claim for claim in claims if claim.lease_token not in stalled]

    def _tell(self, token: int) -> None:
        if watch := self._watched.get(token):
            self._told.add(token)
            message = (
                f"no heartbeat() for {watch.timeout_seconds:g} s: the lease is not renewed, others will run the job"
            )
            telemetry.warning("lease.stalled", message, job=watch.claim.id, token=token)
