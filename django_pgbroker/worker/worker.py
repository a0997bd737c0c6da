"""The worker: a main thread that takes turns with the database, and slots that run handlers. For pgbroker_worker."""

import time
from contextlib import nullcontext
from typing import Any

import django.db
import psycopg

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Orders, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verdicts import interrupt, release
from django_pgbroker.runtime.announcer import announce
from django_pgbroker.runtime.backoff_timer import BackoffTimer
from django_pgbroker.runtime.listener import Listener
from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.worker.busy_pace import BusyPace
from django_pgbroker.worker.doubt import settle_doubt
from django_pgbroker.worker.executor import Executor
from django_pgbroker.worker.fetcher import Fetcher
from django_pgbroker.worker.lane import Look
from django_pgbroker.worker.lease_keeper import LeaseKeeper
from django_pgbroker.worker.mailbox import TURN_LIMIT, Mailbox, Wake
from django_pgbroker.worker.options import WorkerOptions
from django_pgbroker.worker.session import Session, open_session
from django_pgbroker.worker.slots import Slots
from django_pgbroker.worker.turn import TurnReport, acknowledge_apart, take_turn

#: How long the main thread waits at most before it looks around.
_GLANCE_SECONDS = 1.0

#: Longer than this after the drain's end nothing waits for a row that somebody holds: its lease brings the job back.
_LAST_SECONDS = 2.0

#: A backlog in which nothing moves for this long is handed back: other workers may have a free slot.
_STALL_SECONDS = 1.0

_CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError)


class Worker:
    """Claims, executes and acknowledges until it is asked to stop.

    Args:
        options: how it runs.
        handles_signals: whether SIGTERM and SIGINT stop it; only in a main thread.
    """

    def __init__(self, options: WorkerOptions, *, handles_signals: bool = True) -> None:
        self.options = options
        self._mailbox = Mailbox()
        self.stopping = Stopping(on_change=self._mailbox.wake)
        self._handles_signals = handles_signals
        self._verdicts: list[Verdict] = []
        self._claims: dict[int, ClaimedJob] = {}
        self._lost: set[int] = set()
        self._drain_until: float | None = None
        self._measured_at = time.monotonic()
        self._backoff = BackoffTimer()
        self._busy_pace = BusyPace()
        self._is_away = False
        #: Handlers that had not ended when ``run`` returned; their jobs have been handed back.
        self.left_running = 0

    def run(self) -> int:
        """Work until stopped, or until the queues are empty where the options say so.

        Returns:
            The exit status: 0 after a clean end, 1 when jobs were interrupted by a second signal.

        Raises:
            ConfigurationError: the queues do not fit the settings.
            psycopg.Error, django.db.Error: the database cannot be used at all, for example because it is not migrated.
        """
        with self.stopping.on_signals() if self._handles_signals else nullcontext():
            session = self._open_session()
            if session is None:
                return 0
            self._start(session)
            try:
                while not self._is_done():
                    self._work_once()
            finally:
                self._finish()
        return 1 if self.stopping.abort.is_set() else 0

    # -------------------------------------------------------------------------------------------- start and end

    def _open_session(self) -> Session | None:
        while not self.stopping.drain.is_set():
            try:
                return open_session(self.options)
            except (*_CONNECTION_ERRORS, django.db.OperationalError, django.db.InterfaceError) as error:
                self._wait_for_database(error)
        return None

    def _start(self, session: Session) -> None:
        options, settings = self.options, self.options.settings
        self._session = session
        self._fetcher = Fetcher(session.lanes, options.concurrency, settings.prefetch_limit)
        self._executor = Executor(session.directory, settings.result_limit_bytes, self._is_stopping_claim)
        self._slots = Slots(options.concurrency, self._execute, self._mailbox.put)
        self._keeper = LeaseKeeper(
            options.database,
            session.worker_id,
            options.name,
            lease_seconds=settings.lease_seconds,
            heartbeat_seconds=settings.heartbeat_seconds,
            held=lambda: list(self._claims.values()),
            running_ids=self._slots.running_ids,
            on_lost=self._note_lost,
            on_orders=self._obey,
            is_draining=self.stopping.drain.is_set,
        )
        self._listener = Listener(options.database, options.name, self._mailbox.wake) if settings.listen else None
        self._slots.start()
        self._keeper.start()
        if self._listener:
            self._listener.start()

    def _finish(self) -> None:
        self._keeper.stop()
        if self._listener:
            self._listener.stop()
        self._slots.close(timeout_seconds=1.0)
        self.left_running = len(self._slots.running_ids())
        self._keeper.join(5.0)
        try:
            self._session.end("aborted" if self.stopping.abort.is_set() else "stopped")
        except psycopg.Error:
            self._session.close()
        if self._listener:
            self._listener.join(5.0)
        telemetry.info("worker.stopped", "good-bye", worker=self._session.worker_id)

    def _is_done(self) -> bool:
        if self._claims or self._verdicts:
            return False
        if self.stopping.drain.is_set():
            return True
        if not self.options.until_empty or not all(lane.is_empty for lane in self._session.lanes):
            return False
        try:
            if self._session.has_unfinished_work():
                return False
            self._tell_left()
        except psycopg.Error as error:
            self._recover(error)
            return False
        return True

    def _tell_left(self) -> None:
        for queue, job_types in self._session.find_left_types().items():
            if job_types:
                message = "jobs stay: the queue is paused, or this process knows no handler for them"
                telemetry.warning("worker.left_jobs", message, queue=queue, job_types=", ".join(job_types))

    # -------------------------------------------------------------------------------------------- the loop

    def _work_once(self) -> None:
        verdicts, wakes = self._mailbox.read(self._patience())
        self._accept(verdicts)
        for wake in wakes:
            self._wake(wake)
        self._measure(len(verdicts))
        if self.stopping.drain.is_set():
            self._drain()
        try:
            self._run_turn()
        except psycopg.Error as error:
            self._recover(error)

    def _accept(self, verdicts: list[Verdict]) -> None:
        """Take in verdicts of claims that are still held; a job may have been lost here and claimed here again."""
        for verdict in verdicts:
            claim = self._claims.get(verdict.job_id)
            if claim is None or claim.lease_token != verdict.lease_token:
                self._lost.discard(verdict.lease_token)
                self._tell_stale([verdict])
                continue
            if self._drain_until is not None:
                self._replace_interruption(verdict.job_id)
            self._verdicts.append(verdict)

    def _replace_interruption(self, job_id: int) -> None:
        """A handler that ends while its interruption waits to be recorded has decided for itself."""
        self._verdicts = [verdict for verdict in self._verdicts if verdict.job_id != job_id]

    def _patience(self) -> float:
        if self._verdicts:
            return self._busy_pace.seconds
        if not self._may_claim() or not self._fetcher.has_room(len(self._claims)):
            return _GLANCE_SECONDS
        return min(_GLANCE_SECONDS, self._fetcher.seconds_to_next_look(time.monotonic()))

    def _run_turn(self) -> None:
        verdicts, self._verdicts = self._verdicts[:TURN_LIMIT], self._verdicts[TURN_LIMIT:]
        acknowledged = [self._claims.pop(verdict.job_id) for verdict in verdicts]
        now = time.monotonic()
        looks = self._fetcher.plan(len(self._claims), now) if self._may_claim() else []
        if not verdicts and not looks:
            return
        try:
            report = self._take_turn(verdicts, looks)
        except BaseException:
            self._hold(verdicts, acknowledged)
            raise
        self._take_in(report, verdicts, acknowledged)

    def _may_claim(self) -> bool:
        """Not while this worker drains, nor while it cannot keep a lease."""
        return not (self.stopping.drain.is_set() or self._keeper.is_trust_over)

    def _execute(self, claim: ClaimedJob) -> Verdict:
        """In a slot: begin a claim, or hand it back where others may have it, or its handler would find no database."""
        if self._is_away or self._keeper.is_trust_over or claim.lease_token in self._lost:
            return release(claim)
        return self._executor.execute(claim)

    def _take_turn(self, verdicts: list[Verdict], looks: list[Look]) -> TurnReport:
        try:
            return take_turn(self._session, verdicts, looks)
        except psycopg.DataError:
            return acknowledge_apart(self._session, verdicts)

    def _take_in(self, report: TurnReport, verdicts: list[Verdict], acknowledged: list[ClaimedJob]) -> None:
        self._note_database_is_there()
        now = time.monotonic()
        busy, stale = report.acknowledged
        self._busy_pace.learn(bool(busy))
        if busy or stale:
            self._hold(
                [verdict for verdict in verdicts if verdict.job_id in busy],
                [claim for claim in acknowledged if claim.id in busy],
            )
            self._tell_stale([verdict for verdict in verdicts if verdict.job_id in stale])
        if self._lost:
            self._lost.difference_update(verdict.lease_token for verdict in verdicts)
        for verdict, claim in zip(verdicts, acknowledged, strict=True):
            if verdict.next_state < JobState.COMPLETED:
                self._expect(claim.queue_id, now + verdict.delay_seconds)
        for name in report.woken_queues:
            self._wake(Wake(name))
            announce(self.options.database, name)
        for look, claims, promotion in report.found:
            look.lane.learn(look, claims, promotion, now)
            self._begin(claims)

    def _begin(self, claims: list[ClaimedJob]) -> None:
        tenants = self._session.directory.tenants
        for claim in claims:
            if claim.tenant_id not in tenants:
                self._session.name_tenant(claim.tenant_id)
            if lost := self._claims.get(claim.id):
                self._give_up(lost)
            self._claims[claim.id] = claim
        self._slots.give(claims)

    def _give_up(self, lost: ClaimedJob) -> None:
        """A job that was lost here is claimed here again: what waits for the old claim must not end the new one."""
        held = [verdict for verdict in self._verdicts if verdict.job_id == lost.id]
        if held:
            self._verdicts = [verdict for verdict in self._verdicts if verdict.job_id != lost.id]
            self._tell_stale(held)
        else:
            self._lost.add(lost.lease_token)

    def _hold(self, verdicts: list[Verdict], claims: list[ClaimedJob]) -> None:
        """Keep verdicts for a later turn; until then their leases are renewed."""
        self._claims.update((claim.id, claim) for claim in claims)
        self._verdicts = [*verdicts, *self._verdicts]

    def _measure(self, finished: int) -> None:
        now = time.monotonic()
        if finished:
            self._fetcher.measure(finished, now - self._measured_at)
            self._measured_at = now
        elif self._slots.backlog_size and now - self._measured_at > _STALL_SECONDS:
            self._fetcher.forget_rate()
            self._release_backlog()

    def _release_backlog(self) -> None:
        self._verdicts += [release(claim) for claim in self._slots.take_back()]

    # -------------------------------------------------------------------------------------------- wakes and orders

    def _wake(self, wake: Wake) -> None:
        for lane in self._session.lanes:
            if wake.queue is None or wake.queue == lane.name:
                lane.wake()

    def _expect(self, queue_id: int, due_at: float) -> None:
        for lane in self._session.lanes:
            if lane.queue_id == queue_id:
                lane.expect(due_at)

    def _obey(self, orders: Orders) -> None:
        if orders.stop and not self.stopping.abort.is_set():
            telemetry.info("worker.ordered", "an operator asked this worker to stop at once")
            self.stopping.request_abort()
        elif orders.drain and not self.stopping.drain.is_set():
            telemetry.info("worker.ordered", "an operator asked this worker to drain")
            self.stopping.request_drain()

    def _is_stopping_claim(self, lease_token: int) -> bool:
        return self.stopping.drain.is_set() or lease_token in self._lost or self._keeper.is_trust_over

    def _note_lost(self, job_id: int, lease_token: int) -> None:
        """Told by the lease keeper, perhaps late: the job may have been acknowledged, and claimed here again, since."""
        claim = self._claims.get(job_id)
        if claim is not None and claim.lease_token == lease_token and lease_token not in self._lost:
            self._lost.add(lease_token)
            _tell_lost(job_id, lease_token, "if its handler runs here, its verdict will change nothing")

    def _tell_stale(self, verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            if verdict.outcome is not Outcome.RELEASED:
                _tell_lost(verdict.job_id, verdict.lease_token, f"the verdict {verdict.outcome.label} was refused")

    # -------------------------------------------------------------------------------------------- drain

    def _drain(self) -> None:
        if self._drain_until is None:
            seconds = self.options.settings.drain_seconds
            self._drain_until = time.monotonic() + seconds
            telemetry.info("worker.draining", f"what runs may finish within {seconds:g} s", running=len(self._claims))
            self._keeper.beat_now()
        self._release_backlog()
        now = time.monotonic()
        if self.stopping.abort.is_set():
            self._drain_until = min(self._drain_until, now)
            self._interrupt_running("the worker was stopped at once")
        elif now >= self._drain_until:
            self._interrupt_running("the worker had to stop before the job was done")
        if self._busy_pace.is_busy and now >= self._drain_until + _LAST_SECONDS:
            self._leave_behind()

    def _leave_behind(self) -> None:
        """The end has come, and somebody holds these rows."""
        for claim in self._claims.values():
            telemetry.warning(
                "job.left_behind", "its row is locked; the lease brings it back", job=claim.id, token=claim.lease_token
            )
        self._claims.clear()
        self._verdicts.clear()

    def _interrupt_running(self, reason: str) -> None:
        judged = {verdict.job_id for verdict in self._verdicts}
        running = [claim for claim in self._claims.values() if claim.id not in judged]
        for claim in running:
            telemetry.warning("job.interrupted", reason, job=claim.id, token=claim.lease_token)
        self._verdicts += [interrupt(claim, reason) for claim in running]

    # -------------------------------------------------------------------------------------------- a lost database

    def _recover(self, error: Exception) -> None:
        self._wait_for_database(error)
        if self._gives_up():
            return
        try:
            self._session.reconnect()
            self._forget(settle_doubt(self._session, self._claims, self._verdicts))
        except psycopg.Error as again:
            self._note_away(again)

    def _forget(self, done: set[int]) -> None:
        """These verdicts were recorded by the turn whose answer was lost."""
        self._verdicts = [verdict for verdict in self._verdicts if verdict.job_id not in done]
        for job_id in done:
            self._claims.pop(job_id, None)

    def _gives_up(self) -> bool:
        """When it is time to go and the database is away, the leases will bring the jobs back."""
        is_over = self._drain_until is not None and time.monotonic() >= self._drain_until
        if self.stopping.abort.is_set() or is_over:
            self._claims.clear()
            self._verdicts.clear()
            return True
        return False

    def _wait_for_database(self, error: Exception) -> None:
        self._note_away(error)
        self._collect(self._backoff.next_seconds())

    def _collect(self, seconds: float) -> None:
        """Wait, but go on taking in verdicts and be woken by a signal."""
        verdicts, _ = self._mailbox.read(seconds)
        self._accept(verdicts)

    def _note_away(self, error: Exception) -> None:
        if not self._is_away:
            telemetry.warning("worker.database_lost", f"trying to reach it again: {error}".strip())
        self._is_away = True

    def _note_database_is_there(self) -> None:
        if self._is_away:
            telemetry.info("worker.database_back", "work goes on")
        self._is_away = False
        self._backoff.reset()


def _tell_lost(job_id: int, token: int, message: str) -> None:
    fields: dict[str, Any] = {"job": job_id, "token": token}
    telemetry.warning("lease.lost", message, **fields)
