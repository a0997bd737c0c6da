"""Orders that change how a worker works: its size, and queues that it is to leave. They end with its process."""

import time
from collections.abc import Callable, Sequence

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Orders
from django_pgbroker.worker.drain import hand_back_queues
from django_pgbroker.worker.holdings import Holdings
from django_pgbroker.worker.lane import Lane
from django_pgbroker.worker.pools.pools import Pools
from django_pgbroker.worker.stations import Stations


class LocalOrders:
    """Noted by the lease keeper, carried out by the worker's main thread.

    Args:
        lanes: all of the worker.
        stations: of the worker.
        pools: of the worker.
        holdings: of the worker.
        tell: has the worker's row say what has become of an order.
    """

    def __init__(
        self, lanes: Sequence[Lane], stations: Stations, pools: Pools, holdings: Holdings, tell: Callable[[], None]
    ) -> None:
        self._lanes = lanes
        self._stations = stations
        self._pools = pools
        self._holdings = holdings
        self._tell = tell
        self._wanted: tuple[int | None, frozenset[str]] = (None, frozenset())
        self._size: int | None = None
        self._paused: frozenset[str] = frozenset()
        self._paused_ids: frozenset[int] = frozenset()

    def note(self, orders: Orders) -> bool:
        """Take in what a heartbeat brought; whether there is something to carry out."""
        self._wanted = (orders.concurrency, orders.paused_queues)
        return self._wanted != (self._size, self._paused)

    def may_begin(self, claim: ClaimedJob) -> bool:
        """Whether no order holds this claim back; asked in any thread."""
        return claim.queue_id not in self._paused_ids

    def carry_out(self) -> None:
        """Do what is wanted and not done yet."""
        size, paused = self._wanted
        if size != self._size:
            self._size = size
            if size is not None:
                self._resize(size)
        if paused != self._paused:
            self._pause(paused)

    def _resize(self, size: int) -> None:
        capacity = self._stations.resize(size)
        if capacity == size:
            telemetry.info("worker.ordered", "an operator asked this worker to change its size", concurrency=size)
        else:
            message = f"an operator asked this worker to run {size:,} handlers at once, which is more than it can"
            telemetry.warning("worker.ordered", message, concurrency=capacity)
        self._tell()

    def _pause(self, paused: frozenset[str]) -> None:
        """Leave queues: nothing of them begins any more, and what waits here goes back; or take them up again."""
        left, taken_up = paused - self._paused, self._paused - paused
        self._paused = paused
        self._paused_ids = frozenset(lane.queue_id for lane in self._lanes if lane.name in paused)
        for lane in self._lanes:
            if lane.name in left:
                lane.is_paused = True
            elif lane.name in taken_up:
                lane.resume(time.monotonic())
        if left:
            hand_back_queues(self._pools, self._holdings, self._paused_ids)
        for verb, names in (("leave", left), ("take up", taken_up)):
            for name in sorted(names):
                telemetry.info("worker.ordered", f"an operator asked this worker to {verb} a queue", queue=name)
