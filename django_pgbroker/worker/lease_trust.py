"""When a worker that cannot keep its leases gives up (decision 12), and what ends it when it cannot even do that."""

import threading
import time
from collections.abc import Callable, Collection

from django_pgbroker import telemetry
from django_pgbroker.worker.lease_keeper import LeaseKeeper

#: The exit status of a worker that could not keep its leases: start it again. It is EX_TEMPFAIL of sysexits.h.
LEASES_NOT_KEPT = 75


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


class LeaseWatchdog(threading.Thread):
    """Ends the process when handlers run on while their leases lapse: its main thread hangs in a silent network.

    Args:
        keeper: of the leases.
        running_ids: the jobs whose handlers run.
        on_lapse: ends the process.
    """

    def __init__(
        self, keeper: LeaseKeeper, running_ids: Callable[[], Collection[int]], on_lapse: Callable[[], object]
    ) -> None:
        super().__init__(name="pgbroker-lease-watchdog", daemon=True)
        self._keeper = keeper
        self._running_ids = running_ids
        self._on_lapse = on_lapse
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def run(self) -> None:
        """Sleep until the leases could be over, again and again."""
        while not self._stopped.wait(max(self._keeper.lapses_at - time.monotonic(), 0.05)):
            is_over = time.monotonic() >= self._keeper.lapses_at and self._keeper.has_failed_for_too_long
            if is_over and self._running_ids():
                telemetry.error("worker.cut_off", "the leases lapse while handlers run: the process ends at once")
                self._on_lapse()
                return
