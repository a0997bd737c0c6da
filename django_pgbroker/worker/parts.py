"""The parts of a running worker beside its main thread, made for one session and wired to each other."""

from collections.abc import Callable
from dataclasses import dataclass, field

from django_pgbroker.domain.records import ClaimedJob, Orders
from django_pgbroker.runtime.listener import Listener, make_listener
from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.worker.async_executor import AsyncExecutor
from django_pgbroker.worker.drain import Drain
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.holdings import Holdings
from django_pgbroker.worker.lease_keeper import LeaseKeeper
from django_pgbroker.worker.lease_trust import LeaseTrust, LeaseWatchdog
from django_pgbroker.worker.local_orders import LocalOrders
from django_pgbroker.worker.mailbox import Mailbox
from django_pgbroker.worker.news import News
from django_pgbroker.worker.options import WorkerOptions
from django_pgbroker.worker.overseer import Overseer
from django_pgbroker.worker.pool_maker import make_pools
from django_pgbroker.worker.pools.pools import Pools
from django_pgbroker.worker.progress_board import ProgressBoard
from django_pgbroker.worker.session import Session
from django_pgbroker.worker.stations import Stations, make_stations
from django_pgbroker.worker.stops import Stops
from django_pgbroker.worker.worker_link import WorkerLink


@dataclass(frozen=True)
class Shared:
    """What the main thread, the slots and the other parts all know; each value is safe to use as its class says."""

    stopping: Stopping
    mailbox: Mailbox = field(default_factory=Mailbox)
    holdings: Holdings = field(default_factory=Holdings)
    heartbeats: HandlerHeartbeats = field(default_factory=HandlerHeartbeats)
    stops: Stops = field(default_factory=Stops)
    board: ProgressBoard = field(default_factory=ProgressBoard)


@dataclass(frozen=True)
class Callbacks:
    """What the parts ask of the worker: see ``Worker`` for the first two; whether a claim may begin."""

    on_beat: Callable[[int, bool], None]
    on_lapse: Callable[[], object]
    may_begin: Callable[[ClaimedJob], bool]


class Parts:
    """Made, not started.

    Args:
        session: of the worker.
        options: of the worker.
        shared: with the main thread.
        callbacks: to the worker.

    Raises:
        ConfigurationError: child processes are needed and cannot be made.
    """

    def __init__(self, session: Session, options: WorkerOptions, shared: Shared, callbacks: Callbacks) -> None:
        settings = options.settings
        self.news = News(
            holdings=shared.holdings,
            stops=shared.stops,
            mailbox=shared.mailbox,
            stopping=shared.stopping,
            job_types=session.directory.job_types,
            beat_now=self._beat_now,
            look_now=self._look_now,
            note_orders=self._note_orders,
        )
        self.keeper = self._make_keeper(session, options, shared, callbacks)
        link = WorkerLink(
            stops=shared.stops,
            holdings=shared.holdings,
            heartbeats=shared.heartbeats,
            stopping=shared.stopping,
            keeper=self.keeper,
            clock=session.clock,
            board=shared.board,
        )
        executor = AsyncExecutor(session.directory, settings.result_limit_bytes, link, shared.heartbeats)
        self.pools: Pools = make_pools(
            session,
            options,
            executor=executor,
            heartbeats=shared.heartbeats,
            link=link,
            may_begin=callbacks.may_begin,
            deliver=shared.mailbox.put,
        )
        self.stations: Stations = make_stations(session, options, self.pools)
        self.orders = LocalOrders(session.lanes, self.stations, self.pools, shared.holdings, self._beat_now)
        self.overseer = Overseer(
            self.pools,
            shared.stops,
            session.clock,
            grace_seconds=settings.stop_grace_seconds,
            judge=executor.judge_abandoned,
            deliver=shared.mailbox.put,
        )
        self.trust = LeaseTrust(self.keeper, settings.heartbeat_seconds)
        self.watchdog = LeaseWatchdog(self.keeper, self.pools.running_ids, callbacks.on_lapse)
        self.drain = Drain(
            shared.stopping,
            shared.holdings,
            self.pools,
            self.keeper,
            seconds=settings.drain_seconds,
            most_interruptions=lambda claim: session.directory.job_types[claim.job_type_id].max_interruptions,
        )
        self.listener: Listener | None = make_listener(settings, options.database, options.name, self.news.hear)

    def _make_keeper(
        self, session: Session, options: WorkerOptions, shared: Shared, callbacks: Callbacks
    ) -> LeaseKeeper:
        settings = options.settings
        return LeaseKeeper(
            options.database,
            session.worker_id,
            options.name,
            lease_seconds=settings.lease_seconds,
            heartbeat_seconds=settings.heartbeat_seconds,
            held=lambda: shared.heartbeats.leave_out_stalled(shared.holdings.claims),
            running_ids=self._running_ids,
            capacity=self._capacity,
            on_lost=self.news.note_lost,
            on_cancelled=self.news.note_cancelled,
            on_orders=self.news.obey,
            clock=session.clock,
            is_draining=shared.stopping.drain.is_set,
            on_beat=callbacks.on_beat,
        )

    def _beat_now(self) -> None:
        self.keeper.beat_now()

    def _look_now(self) -> None:
        self.overseer.look_now()

    def _note_orders(self, orders: Orders) -> bool:
        return self.orders.note(orders)

    def _running_ids(self) -> set[int]:
        return self.pools.running_ids()

    def _capacity(self) -> int:
        return self.pools.capacity

    def start(self) -> None:
        """Start the threads and the child processes."""
        self.pools.start()
        self.overseer.start()
        self.keeper.start()
        self.watchdog.start()
        if self.listener:
            self.listener.start()

    def stop(self, patience_seconds: float) -> int:
        """Stop them; nothing is held any more.

        Args:
            patience_seconds: how long to wait for the lease keeper.

        Returns:
            How many handlers have not ended.
        """
        self.keeper.stop()
        if self.listener:
            self.listener.stop()
        self.overseer.stop()
        self.pools.close(timeout_seconds=1.0)
        left = len(self.pools.running_ids()) + self.pools.hung_count
        self.keeper.join(patience_seconds)
        self.watchdog.stop()
        return left
