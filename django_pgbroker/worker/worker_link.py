"""The link of handlers that run in the worker's own process."""

from datetime import datetime

from django_pgbroker.domain.progress import Progress
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.runtime.database_clock import DatabaseClock
from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.holdings import Holdings
from django_pgbroker.worker.lease_keeper import LeaseKeeper
from django_pgbroker.worker.link import find_deadline
from django_pgbroker.worker.progress_board import ProgressBoard
from django_pgbroker.worker.stops import Stops

_LEASE_LOST = Stop(StopKind.LOST, "the lease is lost")
_STALLED = Stop(StopKind.TIMED_OUT, "no heartbeat() came in time")
_DRAINING = Stop(StopKind.DRAINING, "the worker had to stop before the job was done")
_UNSURE = Stop(StopKind.LOST, "the lease could not be renewed")


class WorkerLink:
    """Answers from what the worker knows; see ``JobLink``.

    Args:
        stops: of single claims.
        holdings: what is held, and what is lost of it.
        heartbeats: of handlers that must show progress.
        stopping: how urgently the worker is asked to stop.
        keeper: of the leases.
        clock: of the database.
        board: of the progress that the next turn writes.
    """

    def __init__(
        self,
        *,
        stops: Stops,
        holdings: Holdings,
        heartbeats: HandlerHeartbeats,
        stopping: Stopping,
        keeper: LeaseKeeper,
        clock: DatabaseClock,
        board: ProgressBoard,
    ) -> None:
        self._stops = stops
        self._holdings = holdings
        self._heartbeats = heartbeats
        self._stopping = stopping
        self._keeper = keeper
        self._clock = clock
        self._board = board

    def find_stop(self, lease_token: int) -> Stop | None:
        """Why the handler of this claim should end, if it should."""
        if stop := self._stops.find(lease_token):
            return stop
        if self._holdings.is_lost(lease_token):
            return _LEASE_LOST
        if self._heartbeats.is_stalled(lease_token):
            return _STALLED
        if self._keeper.is_trust_over:
            return _UNSURE
        return _DRAINING if self._stopping.drain.is_set() else None

    def deadline_of(self, claim: ClaimedJob, elapsed_seconds: float) -> datetime | None:
        """When an attempt that began so long ago must be over, by the clock of the database."""
        return find_deadline(claim, elapsed_seconds, self._clock.now())

    def beat(self, lease_token: int) -> None:
        """The handler of this claim gets on."""
        self._heartbeats.beat(lease_token)

    def report_progress(self, job_id: int, lease_token: int, progress: Progress) -> None:
        """How far the handler of this claim is; only the newest counts."""
        self._board.report(job_id, lease_token, progress)

    def mark_memory(self, job_id: int, lease_token: int) -> None:
        """This job remembers steps or a cursor."""
        self._board.mark(job_id, lease_token)
