"""The worker: a main thread that takes turns with the database, and slots that run handlers. For pgbroker_worker."""

import time
from collections.abc import Callable, Sequence

import django.db
import psycopg

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.runtime.announcer import announce
from django_pgbroker.runtime.signal_sender import flush_signals
from django_pgbroker.runtime.stopping import Stopping
from django_pgbroker.worker.busy_pace import BusyPace
from django_pgbroker.worker.doubt import LateTurns, settle_doubt
from django_pgbroker.worker.drain import hand_back_waiting
from django_pgbroker.worker.forks import protect_forks
from django_pgbroker.worker.job_signals import tell_ended
from django_pgbroker.worker.lane import Look
from django_pgbroker.worker.lease_trust import LEASES_NOT_KEPT
from django_pgbroker.worker.mailbox import TURN_LIMIT, Wake
from django_pgbroker.worker.middleware import require_middleware
from django_pgbroker.worker.options import WorkerOptions
from django_pgbroker.worker.outage import Outage
from django_pgbroker.worker.parts import Callbacks, Parts, Shared
from django_pgbroker.worker.recycling import RECYCLED, Recycling
from django_pgbroker.worker.session import Session, open_session
from django_pgbroker.worker.turn import Found, TurnReport, take_safe_turn
from django_pgbroker.worker.vitals import Vitals

#: How long the main thread waits at most before it looks around.
_GLANCE_SECONDS = 1.0

#: Transactional jobs that have ended are counted after so long at the latest.
_COUNT_SECONDS = 0.05

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
        self._shared = Shared(self.stopping)
        self._mailbox, self._holdings = self._shared.mailbox, self._shared.holdings
        #: Claims of the last turn that this process has not taken in yet.
        self._found: list[Found] = []
        self._outage = Outage()
        self._turned_at = time.monotonic()
        self._late_turns = LateTurns()
        self._busy_pace = BusyPace()
        self._recycling = Recycling(
            options.max_jobs, options.max_memory_mb, options.max_hung or max(1, options.concurrency // 2)
        )
        self.vitals = Vitals(options.name, self.stopping.drain.is_set, lambda: self._outage.is_on)
        self._session: Session | None = None
        #: Handlers that had not ended when ``run`` returned; their jobs have been handed back.
        self.left_running = 0
        self._parts: Parts | None = None

    @property
    def is_ordered_away(self) -> bool:
        """Whether it ends because an operator asked it to, by its row in the database."""
        return self._parts is not None and self._parts.news.is_ordered_away

    def run(self) -> int:
        """Work until stopped, or until the queues are empty where the options say so.

        Returns:
            The exit status: 0 after a clean end; 1 when jobs were interrupted by a second signal or could not be handed
            back; ``LEASES_NOT_KEPT`` when the leases of running jobs could not be renewed; ``RECYCLED`` after a clean
            end for which a fresh process is to take its place.

        Raises:
            ConfigurationError: the queues do not fit the settings, or the middleware does not fit the job types.
            psycopg.Error, django.db.Error: the database cannot be used at all, for example because it is not migrated.
        """
        require_middleware(self.options.job_type_names())
        session = self._open_session()
        if session is None:
            return 0
        parts = self._start(session)
        try:
            while not self._is_done(session):
                self._work_once(session)
        finally:
            self._finish(session, parts)
        if self._trust.is_given_up:
            return LEASES_NOT_KEPT
        if self.stopping.abort.is_set() or self._drain.has_left_something:
            return 1
        return RECYCLED if self._recycling.reason else 0

    # -------------------------------------------------------------------------------------------- start and end

    def _open_session(self) -> Session | None:
        while not self.stopping.drain.is_set():
            try:
                return open_session(self.options)
            except (*_CONNECTION_ERRORS, django.db.OperationalError, django.db.InterfaceError) as error:
                self._wait_for_database(error)
        return None

    def _start(self, session: Session) -> Parts:
        callbacks = Callbacks(self._on_beat, self._on_lapse, self._may_begin)
        self._session = session
        self._parts = parts = Parts(session, self.options, self._shared, callbacks)
        self._keeper, self._pools, self._stations = parts.keeper, parts.pools, parts.stations
        self._trust, self._drain, self._orders = parts.trust, parts.drain, parts.orders
        self.vitals.attach(session.worker_id, parts.keeper, parts.pools.running_ids)
        protect_forks()
        parts.start()
        return parts

    def _finish(self, session: Session, parts: Parts) -> None:
        patience = 1.0 if self._outage.is_on else 5.0
        self.left_running = parts.stop(patience)
        try:
            session.end("aborted" if self.stopping.abort.is_set() else "stopped")
        except psycopg.Error:
            session.close()
        if parts.listener:
            parts.listener.join(patience)
        flush_signals(patience)
        telemetry.info("worker.stopped", "good-bye", worker=session.worker_id)

    def _is_done(self, session: Session) -> bool:
        if self._found or not self._holdings.is_empty:
            return False
        if self.stopping.drain.is_set():
            return True
        if not self.options.until_empty or not all(lane.is_empty or lane.is_paused for lane in session.lanes):
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
        self.vitals.note_move()
        verdicts, wakes = self._mailbox.read(self._patience())
        self._holdings.accept(verdicts)
        self._orders.carry_out()
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
            self._check_recycling()
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
        if self._holdings.has_recorded:
            glance = _COUNT_SECONDS
        if seconds_left := self._drain.seconds_left:
            return min(glance, seconds_left)
        if not self._may_claim() or not self._stations.has_room(self._holdings, self._found):
            return glance
        return min(glance, self._stations.seconds_to_next_look(time.monotonic()))

    def _run_turn(self, session: Session) -> None:
        """Send what is due, and take in the claims of the turn before while the server works on it."""
        verdicts = self._holdings.begin_turn(TURN_LIMIT)
        reports = self._shared.board.take(verdicts)
        recorded: list[tuple[Verdict, ClaimedJob]] = []
        try:
            if not verdicts:
                self._take_in(session)
            looks = self._plan_looks()
            if not (verdicts or looks or reports or self._is_count_due()):
                return
            recorded = self._holdings.take_recorded()
            report = take_safe_turn(
                session,
                verdicts,
                looks,
                lambda: self._take_in(session, is_free=False),
                reports,
                [verdict for verdict, _ in recorded],
            )
        except BaseException:
            self._holdings.abandon_turn()
            self._holdings.put_back_recorded(recorded)
            self._shared.board.put_back()
            raise
        self._shared.board.settle(report.progressed)
        self._note_turn(session, report, recorded)
        self._take_in(session)
        self._found = report.found
        if not self._mailbox.has_items:
            self._take_in(session)

    def _is_count_due(self) -> bool:
        """Whether transactional jobs have waited long enough for a turn with something else to do.

        Each turn is a commit of its own, and theirs wait for the same disk.
        """
        return self._holdings.has_recorded and time.monotonic() - self._turned_at > _COUNT_SECONDS

    def _plan_looks(self) -> list[Look]:
        if not self._may_claim():
            return []
        return self._stations.plan(self._holdings, self._found, time.monotonic())

    def _may_claim(self) -> bool:
        """Not while this worker drains or has done its part, nor while it cannot keep a lease."""
        return not (self.stopping.drain.is_set() or self._keeper.is_trust_over or self._recycling.is_spent)

    def _note_turn(self, session: Session, report: TurnReport, recorded: Sequence[tuple[Verdict, ClaimedJob]]) -> None:
        self._outage.end()
        self._turned_at = time.monotonic()
        self.vitals.note_turn()
        now = time.monotonic()
        self._busy_pace.learn(bool(report.acknowledged.busy))
        woken = set(report.woken_queues)
        ended = [*self._holdings.end_turn(report.acknowledged), *recorded]
        self._recycling.note_ended(sum(verdict.outcome is not Outcome.RELEASED for verdict, _ in ended))
        tell_ended(ended, session.directory, refused=report.acknowledged.stale, stops=self._shared.stops)
        for verdict, claim in ended:
            self._shared.stops.forget(claim.lease_token)
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

    def _may_begin(self, claim: ClaimedJob) -> bool:
        """Whether a claim may begin: not where others may have it, nor while its handler would find no database."""
        if self._outage.is_on or self._keeper.is_trust_over or self._holdings.is_lost(claim.lease_token):
            return False
        return self._orders.may_begin(claim) and self._recycling.may_begin()

    # -------------------------------------------------------------------------------------------- wakes

    def _wake(self, session: Session, wake: Wake) -> None:
        now = time.monotonic()
        for lane in session.lanes:
            if wake.queue is None or wake.queue == lane.name:
                lane.wake(now)

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

    def _check_recycling(self) -> None:
        """Make room for a fresh process when this one has done its part; the drain records what it did."""
        if self._recycling.is_spent:
            hand_back_waiting(self._pools, self._holdings)
        if self._recycling.check(self._pools.hung_count, holds_nothing=self._holdings.is_empty and not self._found):
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
        self.vitals.note_move()
        verdicts, _ = self._mailbox.read(self._outage.next_wait_seconds())
        self._holdings.accept(verdicts)
