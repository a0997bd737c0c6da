"""Keep the leases of running jobs and the worker's presence, on a connection of its own. A thread of the worker."""

import random
import threading
import time
from collections.abc import Callable, Collection

import psycopg

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Orders
from django_pgbroker.runtime.backoff_timer import BackoffTimer
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.runtime.database_clock import DatabaseClock
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.renew import renew_leases
from django_pgbroker.store.workers import beat_worker

#: So many heartbeats in a row may fail before the jobs are told to stop.
_MOST_MISSED = 3

#: A beat comes up to so much of its interval earlier: workers that were started together drift apart.
_JITTER = 0.1


class LeaseKeeper(threading.Thread):
    """Renews, every heartbeat, the leases of all claims that the worker holds.

    A failure is tried again after a short wait, long before a lease can lapse. A claim that is lost is reported once:
    its handler may go on, but its verdict will change nothing.

    Args:
        alias: a key of ``settings.DATABASES``.
        worker_id: whose presence it is.
        name: shown in ``pg_stat_activity``.
        lease_seconds: how long a lease lasts.
        heartbeat_seconds: how often it is renewed.
        held: answers what the worker holds now.
        running_ids: answers which of those run.
        capacity: answers how many can run at once.
        on_lost: told the id and the token of a claim whose lease is lost.
        on_cancelled: told the token of a claim whose job somebody wants cancelled; again at every heartbeat.
        on_orders: told what operators ask.
        clock: of the database, told its time with every beat.
        is_draining: answers whether the worker drains.
        on_beat: told after each heartbeat how many handlers run, and whether the worker drains.
    """

    def __init__(
        self,
        alias: str,
        worker_id: int,
        name: str,
        *,
        lease_seconds: float,
        heartbeat_seconds: float,
        held: Callable[[], list[ClaimedJob]],
        running_ids: Callable[[], set[int]],
        capacity: Callable[[], int],
        on_lost: Callable[[int, int], None],
        on_cancelled: Callable[[int], None],
        on_orders: Callable[[Orders], None],
        clock: DatabaseClock,
        is_draining: Callable[[], bool] = lambda: False,
        on_beat: Callable[[int, bool], None] = lambda _running, _is_draining: None,
    ) -> None:
        super().__init__(name="pgbroker-lease-keeper", daemon=True)
        self._alias = alias
        self._worker_id = worker_id
        self._label = f"heartbeat {name}"
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._held = held
        self._running_ids = running_ids
        self._capacity = capacity
        self._on_lost = on_lost
        self._on_cancelled = on_cancelled
        self._on_orders = on_orders
        self._clock = clock
        self._is_draining = is_draining
        self._on_beat = on_beat
        self._stopped = threading.Event()
        self._called = threading.Event()
        self._gateway: Gateway | None = None
        self._failures = 0
        self._renewed_at = time.monotonic()
        self._tried_since: float | None = None
        self._trust_seconds = min(_MOST_MISSED * heartbeat_seconds, lease_seconds - heartbeat_seconds / 2)
        self._backoff = BackoffTimer(cap_seconds=heartbeat_seconds / 2)

    @property
    def is_trust_over(self) -> bool:
        """Whether three heartbeats in a row have failed, or the leases are about to lapse: others will run the jobs."""
        return time.monotonic() - self._renewed_at > self._trust_seconds

    @property
    def seconds_since_renewal(self) -> float:
        """How long ago the last heartbeat that went well began; since the start where there was none."""
        return time.monotonic() - self._renewed_at

    @property
    def has_failed_for_too_long(self) -> bool:
        """Whether trust is over although it was tried, and not because this process was frozen meanwhile."""
        since = self._tried_since
        is_tried = since is not None and time.monotonic() - since > self._trust_seconds - self._heartbeat_seconds
        return self.is_trust_over and is_tried

    @property
    def last_moment(self) -> float:
        """The monotonic time after which nothing may run here any more, unless a renewal succeeds before."""
        after = min((_MOST_MISSED + 1) * self._heartbeat_seconds, self._lease_seconds - self._heartbeat_seconds / 4)
        return self._renewed_at + after

    @property
    def lapses_at(self) -> float:
        """The monotonic time at which the leases are as good as over."""
        return self._renewed_at + self._lease_seconds - self._heartbeat_seconds / 8

    def stop(self) -> None:
        """End the thread as soon as it is not talking to the database."""
        self._stopped.set()
        self._called.set()

    def beat_now(self) -> None:
        """Beat at once, whenever the next beat would be: what the worker's row says has changed."""
        self._called.set()

    def run(self) -> None:
        """Beat until stopped; never ends by an error."""
        wait = 0.0
        while True:
            self._called.wait(wait)
            # cleared before the look at the flags: a call that comes during a beat is answered by another one
            self._called.clear()
            if self._stopped.is_set():
                break
            started = time.monotonic()
            self._tried_since = started if self._tried_since is None else self._tried_since
            try:
                self._beat()
            except Exception as error:
                self._fail(error)
                wait = self._backoff.next_seconds()
            else:
                self._succeed(started)
                wait = max(0.0, self._next_beat_seconds() - (time.monotonic() - started))
        self._disconnect()

    def _next_beat_seconds(self) -> float:
        return self._heartbeat_seconds * (1 - _JITTER * random.random())  # noqa: S311 - against herds, not a secret

    def _beat(self) -> None:
        if self._gateway is None:
            timeout = f"{max(1000, int(self._heartbeat_seconds * 1000))}ms"
            self._gateway = open_gateway(self._alias, self._label, statement_timeout=timeout, lock_timeout=timeout)
        self._renew(self._gateway)
        running, is_draining = len(self._running_ids()), self._is_draining()
        orders = beat_worker(
            self._gateway,
            self._worker_id,
            running_count=running,
            concurrency=self._capacity(),
            wall_clock=time.time(),
            is_draining=is_draining,
        )
        self._on_beat(running, is_draining)
        if orders is not None:
            self._clock.learn(orders.epoch_seconds)
            self._on_orders(orders)

    def _renew(self, gateway: Gateway) -> None:
        claims = self._held()
        if not claims:
            return
        begun: Collection[int] = self._running_ids()
        report = renew_leases(gateway, claims, begun, self._lease_seconds)
        if not (report.stale or report.cancelled):
            return
        for claim in claims:
            if claim.id in report.stale:
                self._on_lost(claim.id, claim.lease_token)
            elif claim.id in report.cancelled:
                self._on_cancelled(claim.lease_token)

    def _succeed(self, started: float) -> None:
        self._renewed_at = started
        self._tried_since = None
        if self._failures:
            telemetry.info("lease.renewal_resumed", "leases are renewed again", failures=self._failures)
        self._failures = 0
        self._backoff.reset()

    def _fail(self, error: Exception) -> None:
        self._failures += 1
        if self._failures == 1:
            telemetry.warning("lease.renewal_failed", f"tried again soon: {error}".strip())
        if isinstance(error, psycopg.Error):
            self._disconnect()

    def _disconnect(self) -> None:
        if self._gateway is not None:
            self._gateway.connection.close()
            self._gateway = None
