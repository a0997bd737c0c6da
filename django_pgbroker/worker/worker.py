"""The worker: a main thread that takes turns with the database, and slots that run handlers. For pgbroker_worker."""

import time
from collections.abc import Callable

import django.db
import psycopg

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Orders, Verdict
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.runtime.announcer import announce
from django_pgbroker.runtime.listener import make_listener
from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.worker.async_executor import AsyncExecutor
from django_pgbroker.worker.busy_pace import BusyPace
from django_pgbroker.worker.doubt import LateTurns, settle_doubt
from django_pgbroker.worker.drain import Drain
from django_pgbroker.worker.forks import protect_forks
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.holdings import Holdings
from django_pgbroker.worker.lane import Look
from django_pgbroker.worker.lease_keeper import LeaseKeeper
from django_pgbroker.worker.lease_trust import LeaseTrust, LeaseWatchdog
from django_pgbroker.worker.mailbox import TURN_LIMIT, Mailbox, Wake
from django_pgbroker.worker.options import WorkerOptions
from django_pgbroker.worker.outage import Outage
from django_pgbroker.worker.overseer import Overseer
from django_pgbroker.worker.pool_maker import make_pools
from django_pgbroker.worker.session import Session, open_session
from django_pgbroker.worker.stations import make_stations
from django_pgbroker.worker.stops import Stops
from django_pgbroker.worker.turn import Found, TurnReport, acknowledge_apart, take_turn
from django_pgbroker.worker.worker_link import WorkerLink

#: How long the main thread waits at most before it looks around.
_GLANCE_SECONDS = 1.0

#: The exit status of a worker that could not keep its leases: start it again. It is EX_TEMPFAIL of sysexits.h.
LEASES_NOT_KEPT = 75

_CONNECTION_ERRORS = (psycopg.OperationalError, psycopg.InterfaceError)


class Worker:
    """Claims, executes and acknowledges until it is asked to stop.

    Args:
        options: how it runs.
        on_beat: told after each heartbeat, in another thread, how many handlers run and whether it drains.
        on_lapse: called in another thread when handlers still run while their leases lapse: it ends the process.
    """

    def __init__(
        self,
        options: WorkerOptions,
        on_beat: Callable[[int, bool], None] = lambda _running, _is_draining: None,
        on_lapse: Callable[[], object] = lambda: None,
    ) -> None:
        self.options = options
        self._on_beat = on_beat
        self._on_lapse = on_lapse
        self.stopping = Stopping(on_change=self._note_stopping)
        self._mailbox = Mailbox()
        self._holdings = Holdings()
        #: Claims of the last turn that this process has not taken in yet.
        self._found: list[Found] = []
        self._outage = Outage()
        self._late_turns = LateTurns()
        self._busy_pace = BusyPace()
        self._heartbeats = HandlerHeartbeats()
        self._stops = Stops()
        self._session: Session | None = None
        #: Handlers that had not ended when ``run`` returned; their jobs have been handed back.
        self.left_running = 0
        #: Whether it ends because an operator asked it to, by its row in the database.
        self.is_ordered_away = False

    def run(self) -> int:
        """Work until stopped, or until the queues are empty where the options say so.

        Returns:
            The exit status: 0 after a clean end; 1 when jobs were interrupted by a second signal or could not be handed
            back; ``LEASES_NOT_KEPT`` when the leases of running jobs could not be renewed.

        Raises:
            ConfigurationError: the queues do not fit the settings.
            psycopg.Error, django.db.Error: the database cannot be used at all, for example because it is not migrated.
        """
        session = self._open_session()
        if session is None:
            return 0
        self._start(session)
        try:
            while not self._is_done(session):
                self._work_once(session)
        finally:
            self._finish(session)
        if self._trust.is_given_up:
            return LEASES_NOT_KEPT
        return 1 if self.stopping.abort.is_set() or self._drain.has_left_something else 0

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
        self._keeper = LeaseKeeper(
            options.database,
            session.worker_id,
            options.name,
            lease_seconds=settings.lease_seconds,
            heartbeat_seconds=settings.heartbeat_seconds,
            held=lambda: self._heartbeats.leave_out_stalled(self._holdings.claims),
            running_ids=self._running_ids,
            on_lost=self._holdings.note_lost,
            on_cancelled=self._note_cancelled,
            on_orders=self._obey,
            clock=session.clock,
            is_draining=self.stopping.drain.is_set,
            on_beat=self._on_beat,
        )
        link = WorkerLink(
            stops=self._stops,
            holdings=self._holdings,
            heartbeats=self._heartbeats,
            stopping=self.stopping,
            keeper=self._keeper,
            clock=session.clock,
        )
        self._executor = AsyncExecutor(session.directory, settings.result_limit_bytes, link, self._heartbeats)
        self._pools = make_pools(
            session,
            options,
            executor=self._executor,
            heartbeats=self._heartbeats,
            find_stop=link.find_stop,
            may_begin=self._may_begin,
            deliver=self._mailbox.put,
        )
        self._stations = make_stations(session, options, self._pools)
        self._overseer = Overseer(
            self._pools,
            self._stops,
            session.clock,
            grace_seconds=settings.stop_grace_seconds,
            judge=self._executor.judge_abandoned,
            deliver=self._mailbox.put,
        )
        self._trust = LeaseTrust(self._keeper, settings.heartbeat_seconds)
        self._watchdog = LeaseWatchdog(self._keeper, self._pools.running_ids, self._on_lapse)
        self._drain = Drain(
            self.stopping,
            self._holdings,
            self._pools,
            self._keeper,
            seconds=settings.drain_seconds,
            most_interruptions=lambda claim: session.directory.job_types[claim.job_type_id].max_interruptions,
        )
        self._listener = make_listener(settings, options.database, options.name, self._mailbox.wake)
        protect_forks()
        self._pools.start()
        self._overseer.start()
        self._keeper.start()
        self._watchdog.start()
        if self._listener:
            self._listener.start()

    def _finish(self, session: Session) -> None:
        self._keeper.stop()
        if self._listener:
            self._listener.stop()
        self._overseer.stop()
        self._pools.close(timeout_seconds=1.0)
        self.left_running = len(self._pools.running_ids()) + self._pools.hung_count
        patience = 1.0 if self._outage.is_on else 5.0
        self._keeper.join(patience)
        self._watchdog.stop()
        try:
            session.end("aborted" if self.stopping.abort.is_set() else "stopped")
        except psycopg.Error:
            session.close()
        if self._listener:
            self._listener.join(patience)
        telemetry.info("worker.stopped", "good-bye", worker=session.worker_id)

    def _is_done(self, session: Session) -> bool:
        if self._found or not self._holdings.is_empty:
            return False
        if self.stopping.drain.is_set():
            return True
        if not self.options.until_empty or not all(lane.is_empty for lane in session.lanes):
            return False
        try:
            if session.has_unfinished_work():
                return False
            session.tell_left_jobs()
        except psycopg.Error as error:
            self._recover(session, error)
            return False
        return True

    # -------------------------------------------------------------------------------------------- the loop

    def _work_once(self, session: Session) -> None:
        verdicts, wakes = self._mailbox.read(self._patience())
        self._holdings.accept(verdicts)
        for wake in wakes:
            self._wake(session, wake)
        self._stations.measure(verdicts, self._holdings)
        try:
            self._check_leases(session)
            if self.stopping.drain.is_set():
                self._take_in(session)
                until = self._keeper.last_moment if self._trust.is_given_up else None
                self._drain.step(is_busy=self._busy_pace.is_busy, until=until)
            self._run_turn(session)
            if self._late_turns.is_due:
                self._take_in(session)
                self._late_turns.settle(session, self._holdings.claims)
        except psycopg.Error as error:
            self._recover(session, error)

    def _patience(self) -> float:
        if self._found:
            return 0.0
        if self._holdings.has_verdicts:
            return self._busy_pace.seconds
        glance = min(_GLANCE_SECONDS, self.options.settings.heartbeat_seconds / 4)
        if seconds_left := self._drain.seconds_left:
            return min(glance, seconds_left)
        if not self._may_claim() or not self._stations.has_room(self._holdings, self._found):
            return glance
        return min(glance, self._stations.seconds_to_next_look(time.monotonic()))

    def _run_turn(self, session: Session) -> None:
        """Send what is due, and take in the claims of the turn before while the server works on it."""
        verdicts = self._holdings.begin_turn(TURN_LIMIT)
        try:
            if not verdicts:
                self._take_in(session)
            looks = self._plan_looks()
            if not verdicts and not looks:
                return
            report = _take_turn(session, verdicts, looks, lambda: self._take_in(session, is_free=False))
        except BaseException:
            self._holdings.abandon_turn()
            raise
        self._note_turn(session, report)
        self._take_in(session)
        self._found = report.found
        if not self._mailbox.has_items:
            self._take_in(session)

    def _plan_looks(self) -> list[Look]:
        if not self._may_claim():
            return []
        return self._stations.plan(self._holdings, self._found, time.monotonic())

    def _may_claim(self) -> bool:
        """Not while this worker drains, nor while it cannot keep a lease."""
        return not (self.stopping.drain.is_set() or self._keeper.is_trust_over)

    def _note_turn(self, session: Session, report: TurnReport) -> None:
        self._outage.end()
        now = time.monotonic()
        self._busy_pace.learn(bool(report.acknowledged.busy))
        woken = set(report.woken_queues)
        for verdict, claim in self._holdings.end_turn(report.acknowledged):
            self._stops.forget(claim.lease_token)
            if verdict.next_state < JobState.COMPLETED:
                session.expect(claim.queue_id, now + verdict.delay_seconds)
            if verdict.next_state is JobState.PENDING:
                woken.add(session.directory.queues[claim.queue_id])
        for name in woken:
            self._wake(session, Wake(name))
            if self.options.settings.listen:
                announce(self.options.database, name)

    def _take_in(self, session: Session, *, is_free: bool = True) -> None:
        """Hold the claims that were found and give them to the slots.

        Args:
            session: of this worker.
            is_free: whether its connection can be asked for names; claims that need it wait until it is.
        """
        now = time.monotonic()
        waiting, self._found = self._found, []
        for found in waiting:
            if is_free:
                session.name_tenants(found.claims)
            elif session.has_strangers(found.claims):
                self._found.append(found)
                continue
            found.look.lane.learn(found.look, found.claims, found.promotion, now)
            self._holdings.add(found.claims)
            self._stations.give(found.look.lane, found.claims)

    # -------------------------------------------------------------------------------------------- asked by others

    def _running_ids(self) -> set[int]:
        return self._pools.running_ids()

    def _may_begin(self, claim: ClaimedJob) -> bool:
        """Whether a claim may begin: not where others may have it, nor while its handler would find no database."""
        return not (self._outage.is_on or self._keeper.is_trust_over or self._holdings.is_lost(claim.lease_token))

    # -------------------------------------------------------------------------------------------- cancels

    def _note_cancelled(self, lease_token: int) -> None:
        """In the lease keeper: somebody wants this job cancelled."""
        if self._stops.add(lease_token, Stop(StopKind.CANCELLED, "cancelled while it ran")):
            self._overseer.look_now()

    # -------------------------------------------------------------------------------------------- wakes and orders

    def _wake(self, session: Session, wake: Wake) -> None:
        now = time.monotonic()
        for lane in session.lanes:
            if wake.queue is None or wake.queue == lane.name:
                lane.wake(now)

    def _obey(self, orders: Orders) -> None:
        if orders.stop and not self.stopping.abort.is_set():
            telemetry.info("worker.ordered", "an operator asked this worker to stop at once")
            self.is_ordered_away = True
            self.stopping.request_abort()
        elif orders.drain and not self.stopping.drain.is_set():
            telemetry.info("worker.ordered", "an operator asked this worker to drain")
            self.is_ordered_away = True
            self.stopping.request_drain()

    def _note_stopping(self) -> None:
        """In a signal handler or the lease keeper: a turn that hangs must not outlast the drain."""
        if self._session:
            self._session.hurry()
        self._mailbox.wake()

    # -------------------------------------------------------------------------------------------- a lost database

    def _check_leases(self, session: Session) -> None:
        """Stop the jobs and end, when the leases cannot be kept; what runs may end within the next heartbeat."""
        if self._trust.check(is_running=bool(self._pools.running_ids()), ping=session.ping):
            self.stopping.request_drain()

    def _recover(self, session: Session, error: Exception) -> None:
        self._found = []  # strays, for the settlement
        self._wait_for_database(error)
        if self._drain.is_long_over:
            self._drain.leave_behind("no turn can be taken; the lease brings it back")
            return
        try:
            session.reconnect()
            if self.stopping.drain.is_set():
                session.hurry()
            self._holdings.forget(settle_doubt(session, self._holdings.claims, self._holdings.verdicts))
            self._late_turns.expect(session)
        except psycopg.Error as again:
            self._outage.note(again)
            if self._drain.is_over:
                self._drain.leave_behind("the database is away; the lease brings it back")

    def _wait_for_database(self, error: Exception) -> None:
        """Wait before the next try, but go on taking in verdicts and be woken by a signal."""
        self._outage.note(error)
        verdicts, _ = self._mailbox.read(self._outage.next_wait_seconds())
        self._holdings.accept(verdicts)


def _take_turn(
    session: Session, verdicts: list[Verdict], looks: list[Look], meanwhile: Callable[[], None]
) -> TurnReport:
    try:
        return take_turn(session, verdicts, looks, meanwhile)
    except psycopg.DataError:
        return acknowledge_apart(session, verdicts)
