"""Child processes that run handlers, and the claims that wait for one. A dead child costs its own job an attempt."""

import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from django_pgbroker import telemetry
from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.stops import Stop
from django_pgbroker.domain.verdicts import interrupt, judge_child_death, release
from django_pgbroker.worker.child_frames import ChildBrief, Frame, pack_object, unpack_completed, unpack_object
from django_pgbroker.worker.executor import Directory, tell_verdict
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.link import JobLink
from django_pgbroker.worker.pools.child_process import ChildProcess
from django_pgbroker.worker.pools.nursery import Nursery
from django_pgbroker.worker.pools.pool import Running

#: How often it looks at what its children do.
_GLANCE_SECONDS = 0.25

#: A child holds so much work at most, and so many jobs, so that it needs not wait for more.
_WORK_SECONDS = 0.02
_MOST_HELD = 64
_SHORTEST_SECONDS = 0.0001

#: Weight of the newest job in the mean.
_SMOOTHING = 0.1

#: The worker waits so long for its first child before it claims jobs.
_START_SECONDS = 10.0

#: What becomes of recalled claims.
_TO_OTHERS, _TO_QUEUE = b"o", b"q"


class ChildPool:
    """A number of child processes over one backlog; a thread of the worker talks to them all.

    Args:
        capacity: how many children there are.
        brief: what each is told first.
        directory: what the ids in a claim stand for.
        heartbeats: of handlers that must show progress.
        find_stop: asked again and again why the handler of a claim should end.
        may_begin: asked before a claim is sent to a child; where it says no, the claim is released.
        now: the time of the database in epoch seconds, where it is known.
        deliver: takes the verdict; called in the thread of the pool.
    """

    kind = ExecutorKind.PROCESS
    hung_count = 0

    def __init__(
        self,
        capacity: int,
        brief: ChildBrief,
        directory: Directory,
        heartbeats: HandlerHeartbeats,
        *,
        link: JobLink,
        may_begin: Callable[[ClaimedJob], bool],
        now: Callable[[], float | None],
        deliver: Callable[[Verdict], None],
    ) -> None:
        self.capacity = capacity
        self._directory = directory
        self._heartbeats = heartbeats
        self._link = link
        self._find_stop = link.find_stop
        self._may_begin = may_begin
        self._now = now
        self._deliver = deliver
        self._backlog: deque[ClaimedJob] = deque()
        self._nursery = Nursery(capacity, pack_object(Frame.BRIEF, brief), self._welcome)
        self._children = self._nursery.children
        self._selector = selectors.DefaultSelector()
        self._bell, self._bell_end = socket.socketpair()
        self._is_rung = False
        self._is_wanted_back = False
        self._until: float | None = None
        self._handler_seconds = _WORK_SECONDS
        self._heard_at: dict[int, float] = {}
        self._thread = threading.Thread(target=self._run, name="pgbroker-children", daemon=True)

    # -------------------------------------------------------------------------------------------- asked from outside

    def start(self) -> None:
        """Start the children, and wait until the first one is ready or has failed."""
        for end in (self._bell, self._bell_end):
            end.setblocking(False)
        self._selector.register(self._bell_end, selectors.EVENT_READ, None)
        self._thread.start()
        self._nursery.is_first_over.wait(_START_SECONDS)

    def resize(self, capacity: int) -> None:
        """Have the thread start or dismiss children."""
        self.capacity = self._nursery.capacity = capacity
        self._ring()

    def give(self, claims: Sequence[ClaimedJob]) -> None:
        """Add claims to the backlog."""
        self._backlog.extend(claims)
        self._ring()

    def take_back(self) -> list[ClaimedJob]:
        """Empty the backlog; what a child holds and has not begun is delivered as released soon."""
        claims = []
        with suppress(IndexError):
            while True:
                claims.append(self._backlog.pop())
        if any(len(child.held) > 1 for child in list(self._children)):
            self._is_wanted_back = True
            self._ring()
        return claims

    @property
    def backlog_size(self) -> int:
        """Claims that wait, here or in a child behind the one that runs."""
        return len(self._backlog) + sum(max(len(child.held) - 1, 0) for child in list(self._children))

    def running(self) -> list[Running]:
        """The handlers that run at this moment."""
        found = [child.running for child in list(self._children)]
        return [Running(each[0], each[1].begun_at) for each in found if each]

    def running_ids(self) -> set[int]:
        """The jobs whose handlers run at this moment."""
        return {running.claim.id for running in self.running()}

    def interrupt(self, lease_token: int, stop: Stop, *, is_last_call: bool) -> None:
        """Raise ``JobStopped`` in the handler by a signal, and again at the last call."""
        if child := self._find_runner(lease_token):
            child.interrupt(lease_token, stop)

    def abandon(self, lease_token: int) -> bool:
        """Kill the child; another one takes its place."""
        if (child := self._find_runner(lease_token)) is None or child.held.pop(lease_token, None) is None:
            return False
        occupation = child.page.occupation
        if occupation and occupation.token == lease_token:
            child.doomed_for = lease_token
            child.kill()
        return True

    def _find_runner(self, token: int) -> ChildProcess | None:
        for child in list(self._children):
            occupation = child.page.occupation
            if occupation and occupation.token == token and token in child.held:
                return child
        return None

    def close(self, timeout_seconds: float) -> None:
        """Let the children go, whatever they do; those that do not within most of the time are killed."""
        self._until = time.monotonic() + timeout_seconds * 0.8
        self._ring()
        if self._thread.is_alive():
            self._thread.join(timeout_seconds + _GLANCE_SECONDS)

    def _ring(self) -> None:
        if not self._is_rung:
            self._is_rung = True
            with suppress(OSError):
                self._bell.send(b"!")

    # -------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        glance_at = 0.0
        while self._until is None:
            try:
                if (now := time.monotonic()) >= glance_at:
                    self._glance(now)
                    glance_at = now + _GLANCE_SECONDS
                self._listen(glance_at - now)
                self._send_claims()
            except Exception as error:
                telemetry.error("children.failed", "child processes are not served for a moment", exc_info=error)
                time.sleep(_GLANCE_SECONDS)
        self._nursery.dismiss(self._until)
        for end in (self._bell, self._bell_end):
            end.close()
        self._selector.close()

    def _listen(self, patience_seconds: float) -> None:
        for key, _ in self._selector.select(max(patience_seconds, 0.0)):
            if (child := key.data) is None:
                self._is_rung = False
                with suppress(OSError):
                    self._bell_end.recv(64)
                continue
            child.flush()
            self._hear(child)
        if self._is_wanted_back:
            self._is_wanted_back = False
            for child in self._children:
                if len(child.held) > 1 and not child.is_recalled:
                    child.recall(_TO_QUEUE)
        for child in self._children:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if child.has_unsent else 0)
            if self._selector.get_key(child.connection).events != events:
                self._selector.modify(child.connection, events, child)

    def _hear(self, child: ChildProcess) -> None:
        """Take in what a child says; bury it where it will say no more."""
        try:
            for frame, content in child.read():
                self._take_in(child, frame, content)
        except EOFError:
            self._bury(child)

    def _take_in(self, child: ChildProcess, frame: Frame, content: bytes) -> None:
        match frame:
            case Frame.COMPLETED:
                self._end(child, unpack_completed(content))
            case Frame.VERDICT:
                self._end(child, unpack_object(content))
            case Frame.RECALL:
                self._take_recalled(child, *unpack_object(content))
            case Frame.READY:
                self._nursery.note_ready(child)
            case Frame.RETIRED:
                child.is_retired = True
            case Frame.PROGRESS:
                self._link.report_progress(*unpack_object(content))
            case Frame.MEMORY:
                self._link.mark_memory(*unpack_object(content))
            case Frame.FAILED:
                child.failure = content.decode(errors="replace")

    def _end(self, child: ChildProcess, verdict: Verdict) -> None:
        token = verdict.lease_token
        self._nursery.note_verdict(child)
        seconds = max(verdict.run_microseconds / 1_000_000, _SHORTEST_SECONDS)
        self._handler_seconds += _SMOOTHING * (seconds - self._handler_seconds)
        self._forget_heartbeat(token)
        if child.held.pop(token, None) is not None:
            self._deliver(verdict)

    def _take_recalled(self, child: ChildProcess, purpose: bytes, tokens: list[int]) -> None:
        child.is_recalled = False
        claims = [claim for token in tokens if (claim := child.held.pop(token, None))]
        if purpose == _TO_QUEUE:
            for claim in claims:
                self._deliver(release(claim))
        else:
            self._backlog.extendleft(claims)  # the last comes first

    def _forget_heartbeat(self, token: int) -> None:
        if self._heard_at.pop(token, None) is not None:
            self._heartbeats.end(token)

    # -------------------------------------------------------------------------------------------- claims to children

    def _send_claims(self) -> None:
        """Share the backlog among the children that run short."""
        depth = min(max(int(_WORK_SECONDS / self._handler_seconds), 1), _MOST_HELD)
        short = [
            each
            for each in self._children[: self.capacity]
            if each.is_ready and not each.is_retired and len(each.held) <= depth // 2
        ]
        short.sort(key=lambda child: len(child.held))
        for position, child in enumerate(short):
            share = -(-len(self._backlog) // (len(short) - position))
            if claims := self._take_claims(min(depth - len(child.held), share)):
                child.give(claims, self._directory.tenants)

    def _take_claims(self, count: int) -> list[ClaimedJob]:
        claims: list[ClaimedJob] = []
        with suppress(IndexError):
            while len(claims) < count:
                claim = self._backlog.popleft()
                if self._may_begin(claim) and not self._find_stop(claim.lease_token):
                    claims.append(claim)
                else:
                    self._deliver(release(claim))
        return claims

    # -------------------------------------------------------------------------------------------- births and deaths

    def _glance(self, now: float) -> None:
        """Look after the children, and after their number."""
        clock = self._now()
        for child in self._children.copy():
            child.page.set_clock(clock)
            self._look_after(child, now)
            if child.process.poll() is not None:
                self._hear(child)
                self._bury(child)  # a program that it started may keep the socket open
        self._dismiss_surplus()
        self._nursery.replenish()

    def _dismiss_surplus(self) -> None:
        """Let children go that are too many by now, those that run something when it has finished."""
        for child in self._children[self.capacity :]:
            if not child.held:
                if child.is_ready:
                    child.is_retired = True
                    child.hang_up()
            elif len(child.held) > 1 and not child.is_recalled:
                child.recall(_TO_OTHERS)

    def _welcome(self, child: ChildProcess) -> None:
        child.page.set_clock(self._now())
        self._selector.register(child.connection, selectors.EVENT_READ | selectors.EVENT_WRITE, child)

    def _look_after(self, child: ChildProcess, now: float) -> None:
        if (running := child.running) is None:
            return
        claim, (token, begun_at) = running
        stop = self._find_stop(token)
        if stop and child.page.find_stop(token) != stop:
            child.tell(token, stop)
        if len(child.held) > 1 and now - begun_at > _GLANCE_SECONDS and not child.is_recalled:
            child.recall(_TO_OTHERS)
        job_type = self._directory.job_types.get(claim.job_type_id)
        if job_type and job_type.heartbeat_timeout_seconds is not None:
            self._pass_heartbeat(claim, job_type.heartbeat_timeout_seconds, child.page.heard_at)

    def _pass_heartbeat(self, claim: ClaimedJob, timeout_seconds: float, heard_at: float) -> None:
        token = claim.lease_token
        if token not in self._heard_at:
            self._heartbeats.begin(claim, timeout_seconds)
        elif self._heard_at[token] != heard_at:
            self._heartbeats.beat(token)
        self._heard_at[token] = heard_at

    def _bury(self, child: ChildProcess) -> None:
        """Account for what a dead child held: only the job that ran in it has lost anything."""
        if child not in self._children:
            return
        self._selector.unregister(child.connection)
        self._nursery.remove(child)
        claim = child.running[0] if child.running else None
        if child.doomed_for is not None:
            self._forget_heartbeat(child.doomed_for)
        self._judge_death(child)
        self._backlog.extendleft(reversed(child.held.values()))
        child.held.clear()
        self._nursery.explain(child, claim)
        self._nursery.replenish()

    def _judge_death(self, child: ChildProcess) -> None:
        if (running := child.running) is None or child.held.pop(running[1].token, None) is None:
            return
        claim, (token, begun_at) = running
        self._forget_heartbeat(token)
        if child.doomed_for is not None:
            # it had begun when its child was killed for the job before it
            self._deliver(interrupt(claim, "its child process was killed because of another job"))
            return
        ran = int((time.monotonic() - begun_at) * 1_000_000)
        job_type = self._directory.job_types[claim.job_type_id]
        verdict = judge_child_death(claim, child.describe_end(), ran, job_type.retry_policy)
        if verdict.next_state is JobState.DEAD:
            tell_verdict(job_type, claim, verdict)
        self._deliver(verdict)
