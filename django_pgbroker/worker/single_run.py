"""Run one job in this thread, fenced like in any worker, so that a debugger can look on. For ``pgbroker_run``."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from types import FrameType
from typing import NamedTuple

import psycopg

from django_pgbroker.domain.errors import PgbrokerError
from django_pgbroker.domain.options import LARGEST_ID
from django_pgbroker.domain.records import ClaimedJob, Orders, Verdict
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.stops import JobStopped, Stop, StopKind
from django_pgbroker.registry import registry
from django_pgbroker.runtime.announcer import announce
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.runtime.signal_sender import flush_signals
from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.store.one_job import JobStanding, claim_one_job, find_job_standing, promote_one_job
from django_pgbroker.worker.doubt import settle_doubt
from django_pgbroker.worker.executor import Executor
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.holdings import Holdings
from django_pgbroker.worker.interruption import Interruptible
from django_pgbroker.worker.job_signals import tell_ended
from django_pgbroker.worker.lease_keeper import LeaseKeeper
from django_pgbroker.worker.middleware import require_middleware
from django_pgbroker.worker.options import QueueShare, WorkerOptions
from django_pgbroker.worker.progress_board import ProgressBoard
from django_pgbroker.worker.session import Session, open_session
from django_pgbroker.worker.stops import Stops
from django_pgbroker.worker.turn import take_safe_turn
from django_pgbroker.worker.worker_link import WorkerLink

#: How long to try to record the verdict, when the database is away or somebody holds the row.
_RECORD_SECONDS = 30.0
_PAUSE_SECONDS = 0.5

_ABORTED = Stop(StopKind.DRAINING, "the run by hand was aborted")


class CannotClaim(PgbrokerError):
    """The job cannot be run here and now; the message says why."""

    code = "cannot_claim"


class Ended(NamedTuple):
    """What became of the job: the verdict, whether it was recorded, and the state that the database shows now."""

    verdict: Verdict
    is_recorded: bool
    state: JobState | None


class SingleRun:
    """One claim from its beginning to its end.

    Args:
        job_id: the job.
        options: of a worker; its queue and its job type are replaced by those of the job.
        ignores_due_time: run a scheduled job although it is not due.
        tell: shows a line to the person before the screen.
    """

    def __init__(
        self, job_id: int, options: WorkerOptions, *, ignores_due_time: bool, tell: Callable[[str], None]
    ) -> None:
        self._job_id = job_id
        self._options = options
        self._ignores_due_time = ignores_due_time
        self._tell = tell
        self._stopping = Stopping()
        self._region = Interruptible()
        self._stops = Stops()
        self._board = ProgressBoard()
        self._holdings = Holdings()

    def run(self) -> Ended:
        """Claim the job, run its handler in this thread, the main one, and record the verdict.

        Raises:
            CannotClaim: nothing was run and nothing has changed.
            ConfigurationError: the settings do not fit.
            psycopg.Error, django.db.Error: the database cannot be used.
        """
        standing = self._look()
        options = replace(self._options, queues=(QueueShare(standing.queue),), types=(standing.job_type,))
        require_middleware(options.job_type_names())
        session = open_session(options)
        reason = "aborted"
        try:
            claim = self._claim(session)
            ended = self._run_claimed(session, claim)
            reason = "stopped"
            return ended
        finally:
            with suppress(psycopg.Error):
                session.end(reason)
            session.close()

    def _look(self) -> JobStanding:
        """Refuse what can be refused before a worker is registered."""
        if not 0 < self._job_id <= LARGEST_ID:
            raise CannotClaim(f"there is no job {self._job_id}: ids go from 1 to {LARGEST_ID:,}")
        gateway = open_gateway(self._options.database, f"run {self._job_id}")
        try:
            standing = find_job_standing(gateway, self._job_id)
        finally:
            gateway.connection.close()
        if standing is None:
            raise CannotClaim(f"there is no job {self._job_id}; finished ones are forgotten with their history")
        is_early = standing.state is JobState.SCHEDULED and not self._ignores_due_time
        if is_early or standing.state not in (JobState.PENDING, JobState.SCHEDULED) or _is_barred(standing):
            raise CannotClaim(_explain(self._job_id, standing))
        if not registry.knows(standing.job_type):
            raise CannotClaim(
                f"job {self._job_id} is of the type {standing.job_type!r}, and this code has no handler of that name"
            )
        if standing.is_paused:
            self._tell(f"The queue {standing.queue!r} is paused; that is no obstacle here.")
        return standing

    def _claim(self, session: Session) -> ClaimedJob:
        gateway = session.gateway
        with gateway.transaction():
            if self._ignores_due_time:
                promote_one_job(gateway, self._job_id)
            claim = claim_one_job(gateway, self._job_id, session.worker_id, self._options.settings.lease_seconds)
        if claim is None:
            standing = find_job_standing(gateway, self._job_id)
            raise CannotClaim(
                _explain(self._job_id, standing) if standing else f"job {self._job_id} has just been deleted"
            )
        session.name_tenants([claim])
        self._holdings.add([claim])
        return claim

    def _run_claimed(self, session: Session, claim: ClaimedJob) -> Ended:
        keeper = self._make_keeper(session, claim)
        # a clock that stands still: a handler that is looked at in a debugger never stalls
        heartbeats = HandlerHeartbeats(clock=lambda: 0.0)
        link = WorkerLink(
            stops=self._stops,
            holdings=self._holdings,
            heartbeats=heartbeats,
            stopping=self._stopping,
            keeper=keeper,
            clock=session.clock,
            board=self._board,
        )
        executor = Executor(session.directory, self._options.settings.result_limit_bytes, link, heartbeats)
        job_type = session.directory.job_types[claim.job_type_id].name
        self._tell(f"Job {claim.id}: {job_type}, attempt {claim.attempt} of {claim.max_attempts}. No time-out here.")
        keeper.start()
        try:
            with self._on_signals():
                verdict = executor.execute(claim, self._region)
            is_recorded = self._record(session, claim, verdict)
        finally:
            keeper.stop()
            keeper.join(5.0)
        flush_signals(5.0)
        return Ended(verdict, is_recorded, self._find_state(session))

    def _make_keeper(self, session: Session, claim: ClaimedJob) -> LeaseKeeper:
        settings = self._options.settings
        return LeaseKeeper(
            self._options.database,
            session.worker_id,
            self._options.name,
            lease_seconds=settings.lease_seconds,
            heartbeat_seconds=settings.heartbeat_seconds,
            held=lambda: self._holdings.claims,
            capacity=lambda: 1,
            running_ids=lambda: {claim.id},
            on_lost=self._holdings.note_lost,
            on_cancelled=lambda token: self._stop_gently(token, Stop(StopKind.CANCELLED, "cancelled while it ran")),
            on_orders=self._obey,
            clock=session.clock,
            is_draining=self._stopping.drain.is_set,
        )

    # -------------------------------------------------------------------------------------------- asked to stop

    def _stop_gently(self, token: int, stop: Stop) -> None:
        if self._stops.add(token, stop):
            self._tell(f"The job is {stop.kind.value}; its handler learns of it by ctx.should_stop().")

    def _obey(self, orders: Orders) -> None:
        if (orders.stop or orders.drain) and not self._stopping.drain.is_set():
            self._tell("An operator asked this worker to stop; its handler learns of it by ctx.should_stop().")
            self._stopping.request_drain()

    @contextmanager
    def _on_signals(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        previous = {number: signal.signal(number, self._receive) for number in numbers}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _receive(self, _number: int, _frame: FrameType | None) -> None:
        """The first signal asks, every further one ends the handler where it is."""
        if not self._stopping.drain.is_set():
            self._stopping.drain.set()
            self._tell("Asked the handler to stop (ctx.should_stop()); Ctrl-C again aborts it, and the job goes back.")
        elif self._region.is_entered:
            raise JobStopped(_ABORTED)

    # -------------------------------------------------------------------------------------------- the verdict

    def _record(self, session: Session, claim: ClaimedJob, verdict: Verdict) -> bool:
        """Acknowledge; False when the claim had been lost, or could not be recorded in time."""
        until = time.monotonic() + _RECORD_SECONDS
        is_lost_connection = False
        # renewals are over: one that came after the acknowledge would find the claim lost
        self._holdings.clear()
        while True:
            try:
                if is_lost_connection:
                    session.reconnect()
                    if claim.id in settle_doubt(session, [claim], [verdict]):
                        return True
                    is_lost_connection = False
                report = take_safe_turn(
                    session,
                    [] if verdict.is_recorded else [verdict],
                    (),
                    reports=self._board.take([verdict]),
                    recorded=[verdict] if verdict.is_recorded else [],
                )
                if claim.id not in report.acknowledged.busy:
                    break
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                is_lost_connection = True
                self._tell(f"The database does not answer, trying again: {error}".strip())
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE_SECONDS)
        tell_ended([(verdict, claim)], session.directory, refused=report.acknowledged.stale, stops=self._stops)
        queues = set(report.woken_queues)
        if verdict.next_state is JobState.PENDING:
            queues.add(session.directory.queues[claim.queue_id])
        for queue in queues:
            announce(self._options.database, queue)
        return claim.id not in report.acknowledged.stale

    def _find_state(self, session: Session) -> JobState | None:
        with suppress(psycopg.Error):
            if standing := find_job_standing(session.gateway, self._job_id):
                return standing.state
        return None


def _is_barred(standing: JobStanding) -> bool:
    return standing.is_expired or standing.is_limited


def _explain(job_id: int, standing: JobStanding) -> str:
    """Why a job cannot be claimed."""
    match standing.state:
        case JobState.RUNNING:
            return f"job {job_id} runs elsewhere: on worker {standing.worker} since {_show(standing.leased_at)}"
        case JobState.SCHEDULED if not _is_barred(standing):
            return f"job {job_id} is due at {_show(standing.available_at)}; give --now to run it before that"
        case state if state.is_finished:
            return f"job {job_id} has finished as {state.label}, at {_show(standing.finished_at)}"
    if standing.is_expired:
        return f"job {job_id} has expired before it began; it will be archived as such"
    if standing.is_limited:
        return f"job {job_id} waits for a limit or for its turn in a sequence, which only the workers mind"
    if standing.state is JobState.PENDING:
        return f"job {job_id} is being claimed by somebody else at this moment; try again"
    return f"job {job_id} is {standing.state.label}, not pending"


def _show(epoch_seconds: float | None) -> str:
    if epoch_seconds is None:
        return "an unknown time"
    return f"{datetime.fromtimestamp(epoch_seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
