"""What reaches a worker from outside its main thread: notifications, the answers of heartbeats, operators' orders."""

from collections.abc import Callable, Mapping

from django_pgbroker import telemetry
from django_pgbroker.domain.records import Orders
from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.registry import JobType
from django_pgbroker.runtime.listener import read_cancel
from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.worker.holdings import Holdings
from django_pgbroker.worker.mailbox import Mailbox
from django_pgbroker.worker.stops import Stops


class News:
    """Called by the listener and the lease keeper, in their threads.

    Args:
        holdings: what the worker holds.
        stops: of single claims.
        mailbox: of the worker's main thread.
        stopping: how urgently the worker is asked to stop.
        job_types: by their ids.
        beat_now: has the leases renewed at once, which tells what became of them.
        look_now: has the overseer look at once.
        note_orders: takes in orders for the main thread; answers whether it has something to do.
    """

    def __init__(
        self,
        *,
        holdings: Holdings,
        stops: Stops,
        mailbox: Mailbox,
        stopping: Stopping,
        job_types: Mapping[int, JobType],
        beat_now: Callable[[], None],
        look_now: Callable[[], None],
        note_orders: Callable[[Orders], bool],
    ) -> None:
        self._holdings = holdings
        self._stops = stops
        self._mailbox = mailbox
        self._stopping = stopping
        self._job_types = job_types
        self._beat_now = beat_now
        self._look_now = look_now
        self._note_orders = note_orders
        #: Whether an operator asked the worker to end, by its row in the database.
        self.is_ordered_away = False

    def hear(self, payload: str | None) -> None:
        """A queue has work, or a running job is to be cancelled, which the next renewal verifies."""
        job_id = read_cancel(payload)
        if job_id is None:
            self._mailbox.wake(payload)
        elif self._holdings.find(job_id):
            self._beat_now()

    def note_lost(self, job_id: int, lease_token: int) -> None:
        """Others have this job; or it has ended, as a transactional one does before the worker hears of it."""
        claim = self._holdings.find(job_id)
        is_atomic = claim is not None and self._job_types[claim.job_type_id].is_atomic
        self._holdings.note_lost(job_id, lease_token, is_certain=not is_atomic)

    def note_cancelled(self, lease_token: int) -> None:
        """Somebody wants this job cancelled."""
        if self._stops.add(lease_token, Stop(StopKind.CANCELLED, "cancelled while it ran")):
            self._look_now()

    def obey(self, orders: Orders) -> None:
        """Do what an operator asks of the worker."""
        if orders.stop and not self._stopping.abort.is_set():
            telemetry.info("worker.ordered", "an operator asked this worker to stop at once")
            self.is_ordered_away = True
            self._stopping.request_abort()
        elif orders.drain and not self._stopping.drain.is_set():
            telemetry.info("worker.ordered", "an operator asked this worker to drain")
            self.is_ordered_away = True
            self._stopping.request_drain()
        if self._note_orders(orders):
            self._mailbox.wake()
