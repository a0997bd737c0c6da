"""When a worker that cannot keep its leases gives up (decision 12). Asked by the worker's main thread."""

import time
from collections.abc import Callable

from django_pgbroker import telemetry
from django_pgbroker.worker.lease_keeper import LeaseKeeper


class LeaseTrust:
    """Watches the keeper, and decides once.

    Args:
        keeper: of the leases.
        patience_seconds: how long a database that answers may refuse renewals while nothing runs.
    """

    def __init__(self, keeper: LeaseKeeper, patience_seconds: float) -> None:
        self._keeper = keeper
        self._patience = patience_seconds
        self._refused_since: float | None = None
        self.is_given_up = False

    def check(self, *, is_running: bool, ping: Callable[[], None]) -> bool:
        """Whether to give up now: renewals fail for too long, and this is more than an outage while nothing runs.

        Args:
            is_running: whether handlers run, that others could soon run too.
            ping: asks the database for a sign of life.

        Raises:
            psycopg.Error: the database is away, and nothing runs.
        """
        if not self._keeper.is_trust_over:
            self._refused_since = None
        if self.is_given_up or not self._keeper.has_failed_for_too_long:
            return False
        if not is_running and not self._is_refused(ping):
            return False
        self.is_given_up = True
        telemetry.error("worker.gave_up", "its leases cannot be renewed: jobs are stopped, the process ends")
        return True

    def _is_refused(self, ping: Callable[[], None]) -> bool:
        """Whether the database has answered for a heartbeat, and renewals fail all the same."""
        since, self._refused_since = self._refused_since, None
        ping()
        self._keeper.beat_now()
        now = time.monotonic()
        self._refused_since = now if since is None else since
        return now - self._refused_since > self._patience
