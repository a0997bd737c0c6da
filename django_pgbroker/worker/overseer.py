"""See to it that a handler that was cancelled or has timed out ends, and give up one that will not. A thread."""

import math
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.runtime.database_clock import DatabaseClock
from django_pgbroker.worker.pools.pool import Running
from django_pgbroker.worker.pools.pools import Pools
from django_pgbroker.worker.stops import Stops

#: How often it looks at what runs.
_GLANCE_SECONDS = 0.25


class _Pursuit(NamedTuple):
    """Since when a handler is asked to end (monotonic seconds), and whether it had its last call."""

    since: float
    is_last_call: bool = False


class Overseer(threading.Thread):
    """Asks handlers to end in three steps: gently at once, by an exception after half of the grace, then without them.

    Args:
        pools: where handlers run.
        stops: what handlers are told; cancels are put there by others, time-outs by this thread.
        clock: of the database, for deadlines.
        grace_seconds: how long a handler has to end.
        judge: makes the verdict of a handler that is given up, from the claim, the stop and the microseconds it ran.
        deliver: takes that verdict.
    """

    def __init__(
        self,
        pools: Pools,
        stops: Stops,
        clock: DatabaseClock,
        *,
        grace_seconds: float,
        judge: Callable[[ClaimedJob, Stop, int], Verdict],
        deliver: Callable[[Verdict], None],
    ) -> None:
        super().__init__(name="pgbroker-overseer", daemon=True)
        self._pools = pools
        self._stops = stops
        self._clock = clock
        self._grace = grace_seconds
        self._judge = judge
        self._deliver = deliver
        self._pursued: dict[int, _Pursuit] = {}
        self._called = threading.Event()
        self._is_stopped = False

    def stop(self) -> None:
        """End the thread."""
        self._is_stopped = True
        self._called.set()

    def look_now(self) -> None:
        """A stop has been added: do not wait for the next glance."""
        self._called.set()

    def run(self) -> None:
        """Look again and again; never ends by an error."""
        while not self._is_stopped:
            self._called.wait(_GLANCE_SECONDS)
            self._called.clear()
            try:
                self._look(time.monotonic())
            except Exception as error:
                telemetry.error("overseer.failed", "handlers are not stopped in time", exc_info=error)

    def _look(self, now: float) -> None:
        running = self._pools.running()
        for each in running:
            self._attend(each, now)
        if self._pursued:
            tokens = {each.claim.lease_token for each in running}
            for token in self._pursued.keys() - tokens:
                del self._pursued[token]

    def _attend(self, running: Running, now: float) -> None:
        token = running.claim.lease_token
        stop = self._stops.find(token)
        if stop is None:
            if (stop := self._find_timeout(running, now)) is None:
                return
            self._stops.add(token, stop)
        if stop.kind in (StopKind.CANCELLED, StopKind.TIMED_OUT):
            self._pursue(running, stop, now)

    def _find_timeout(self, running: Running, now: float) -> Stop | None:
        claim, begun_at = running
        limit = math.inf if claim.timeout_seconds is None else claim.timeout_seconds
        if now - begun_at >= limit:
            return Stop(StopKind.TIMED_OUT, f"longer than its time-out of {limit:,} s")
        if claim.deadline_at is not None:
            left = self._clock.seconds_until(claim.deadline_at)
            if left is not None and left <= 0:
                return Stop(StopKind.TIMED_OUT, "its deadline has passed")
        return None

    def _pursue(self, running: Running, stop: Stop, now: float) -> None:
        token = running.claim.lease_token
        pursuit = self._pursued.get(token)
        if pursuit is None:
            self._pursued[token] = _Pursuit(now)
            self._pools.interrupt(token, stop, is_last_call=False)
        elif now - pursuit.since >= self._grace:
            self._give_up(running, stop, now)
        elif not pursuit.is_last_call and now - pursuit.since >= self._grace / 2:
            self._pursued[token] = pursuit._replace(is_last_call=True)
            self._pools.interrupt(token, stop, is_last_call=True)

    def _give_up(self, running: Running, stop: Stop, now: float) -> None:
        claim = running.claim
        if not self._pools.abandon(claim.lease_token):
            return
        message = f"its handler did not end within {self._grace:g} s after it was {stop.kind.value}: given up"
        telemetry.error("handler.abandoned", message, job=claim.id, token=claim.lease_token)
        self._deliver(self._judge(claim, stop, int((now - running.begun_at) * 1_000_000)))
