"""What the broker ought to do, as plain Python: no SQL, no locks, one list of jobs. Times are microseconds."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from django_pgbroker.domain.records import Verdict
from django_pgbroker.domain.states import JobState, Outcome

SECOND = 1_000_000

#: Outcomes that give the attempt back, by the promise of the documentation.
_UNCOUNTED = {Outcome.RELEASED, Outcome.SNOOZED, Outcome.INTERRUPTED}

#: After these a job stands where it stood in its queue.
_KEEPS_ITS_PLACE = {Outcome.RELEASED, Outcome.INTERRUPTED}


class LiveRow(NamedTuple):
    """A job in the live table."""

    id: int
    queue: int
    job_type: int
    state: int
    priority: int
    attempt: int
    max_attempts: int
    deaths: int
    interruptions: int
    available_at: int
    claim_order: int
    expires_at: int | None
    token: int | None
    lease_expires_at: int | None
    worker: int | None
    lapses: int
    has_begun: bool


class ArchivedRow(NamedTuple):
    """A job in the archive."""

    id: int
    state: int
    attempt: int
    deaths: int
    interruptions: int
    finished_at: int
    reason: str | None
    result: str | None
    error_class: str | None


class ExecutionRow(NamedTuple):
    """One ended claim."""

    job: int
    token: int
    worker: int
    outcome: int
    attempt: int
    leased_at: int
    finished_at: int


class Claimable(NamedTuple):
    """What a claim must get, as ids in its order: those that begin, those that wait, and how many it must leave."""

    begun: list[int]
    waiting: list[int]
    left_behind: int


@dataclass
class Job:
    """One job, wherever it is; ``leased_at`` belongs to its last claim."""

    row: LiveRow
    leased_at: int = 0

    def change(self, **fields: object) -> None:
        self.row = self.row._replace(**fields)

    def is_held(self, token: int) -> bool:
        return self.row.state == JobState.RUNNING and self.row.token == token


@dataclass
class Model:
    """The whole broker.

    Args:
        ageing: seconds of ageing, by queue.
        lease: how long a claim or a renewal lasts.
    """

    ageing: dict[int, int]
    lease: int
    now: int = 0
    live: dict[int, Job] = field(default_factory=dict)
    archive: dict[int, ArchivedRow] = field(default_factory=dict)
    #: What the rows of archived jobs were when they were live.
    former: dict[int, LiveRow] = field(default_factory=dict)
    executions: list[ExecutionRow] = field(default_factory=list)
    paused: set[int] = field(default_factory=set)

    # ------------------------------------------------------------------------------------------------ verbs

    def enqueue(
        self,
        job_id: int,
        *,
        queue: int,
        job_type: int,
        priority: int,
        delay: int,
        expires: int | None,
        max_attempts: int,
    ) -> None:
        state = JobState.SCHEDULED if delay else JobState.PENDING
        available_at = self.now + delay
        row = LiveRow(
            job_id, queue, job_type, state, priority, 0, max_attempts, 0, 0, available_at,
            self._order(queue, priority, available_at), None if expires is None else self.now + expires,
            None, None, None, 0, False,
        )  # fmt: skip
        self.live[job_id] = Job(row)

    def promote(self, queue: int, batch: int) -> tuple[int, int | None]:
        """How many moved, and how long until the next one is due."""
        waiting = sorted(
            (job for job in self._in_state(JobState.SCHEDULED) if job.row.queue == queue),
            key=lambda job: (job.row.available_at, job.row.id),
        )
        due = [job for job in waiting if job.row.available_at <= self.now][:batch]
        for job in due:
            job.change(state=JobState.PENDING)
        later = [job.row.available_at - self.now for job in waiting if job.row.available_at > self.now]
        return len(due), min(later, default=None)

    def claimable(self, queue: int, types: Collection[int], batch: int, begin: int) -> Claimable:
        """What a claim must get: jobs that lapsed before are the first to begin, and never wait in a worker."""
        if queue in self.paused:
            return Claimable([], [], 0)
        found = [
            job.row
            for job in self._in_state(JobState.PENDING)
            if job.row.queue == queue and job.row.job_type in types and not self._is_overdue(job)
        ]
        seen = sorted(found, key=lambda row: (row.claim_order, row.id))[:batch]
        ranked = sorted(seen, key=lambda row: not row.lapses)
        begun, rest = ranked[:begin], ranked[begin:]
        waiting = [row for row in rest if not row.lapses]
        begun.sort(key=lambda row: (row.claim_order, row.id))
        return Claimable([row.id for row in begun], [row.id for row in waiting], len(rest) - len(waiting))

    def claim(self, job_id: int, token: int, worker: int, *, has_begun: bool) -> None:
        job = self.live[job_id]
        job.leased_at = self.now
        job.change(
            state=JobState.RUNNING, attempt=job.row.attempt + 1, token=token, worker=worker,
            lease_expires_at=self.now + self.lease, has_begun=has_begun,
        )  # fmt: skip

    def renew(self, claims: Iterable[tuple[int, int]], begun: Collection[int]) -> set[int]:
        """The ids that are no longer theirs."""
        stale = set()
        for job_id, token in claims:
            job = self.live.get(job_id)
            if job is not None and job.is_held(token):
                job.change(lease_expires_at=self.now + self.lease, has_begun=job.row.has_begun or job_id in begun)
            else:
                stale.add(job_id)
        return stale

    def acknowledge(self, verdict: Verdict) -> bool:
        """Take a verdict in; False when the claim is no longer the one that runs."""
        job = self.live.get(verdict.job_id)
        if job is None or not job.is_held(verdict.lease_token):
            return False
        row, outcome = job.row, verdict.outcome
        if outcome is not Outcome.RELEASED:
            assert row.worker is not None
            self.executions.append(
                ExecutionRow(
                    row.id, verdict.lease_token, row.worker, outcome, row.attempt, job.leased_at, self.now
                )
            )  # fmt: skip
        has_died = outcome is Outcome.LOST and row.has_begun
        is_uncounted = outcome in _UNCOUNTED or (outcome is Outcome.LOST and not row.has_begun)
        job.change(
            attempt=row.attempt - (is_uncounted and not verdict.next_state.is_finished),
            lapses=row.lapses + (outcome is Outcome.LOST),
            deaths=row.deaths + has_died,
            interruptions=row.interruptions + (outcome is Outcome.INTERRUPTED),
        )
        if verdict.next_state.is_finished:
            error_class = verdict.error.error_class if verdict.error else None
            self._archive(job, verdict.next_state, verdict.reason, verdict.result, error_class)
            return True
        if outcome not in _KEEPS_ITS_PLACE:
            available_at = self.now + round(verdict.delay_seconds * SECOND)
            job.change(
                available_at=available_at, claim_order=self._order(row.queue, row.priority, available_at)
            )  # fmt: skip
        job.change(state=verdict.next_state, token=None, lease_expires_at=None, worker=None, has_begun=False)
        return True

    def lapsed(self, batch: int) -> list[LiveRow]:
        """Running jobs whose lease is over."""
        rows = [job.row for job in self._in_state(JobState.RUNNING)]
        return sorted(row for row in rows if row.lease_expires_at is not None and row.lease_expires_at < self.now)[
            :batch
        ]

    def expire(self, batch: int) -> set[int]:
        overdue = sorted(
            (job.row.expires_at, job.row.id)
            for job in self.live.values()
            if job.row.state != JobState.RUNNING and job.row.expires_at is not None and self._is_overdue(job)
        )[:batch]
        for _, job_id in overdue:
            job = self.live[job_id]
            reason = "not retried before it expired" if job.row.attempt else "not started before it expired"
            self._archive(job, JobState.EXPIRED, reason)
        return {job_id for _, job_id in overdue}

    # ------------------------------------------------------------------------------------------------ operators

    def operate(self, verb: str, ids: Collection[int], value: int = 0) -> set[int]:
        """Do what an operator asks, to those jobs that it can be done to; answers which."""
        return {job_id for job_id in ids if self._operate(verb, job_id, value)}

    def _operate(self, verb: str, job_id: int, value: int) -> bool:
        job = self.live.get(job_id)
        if job is None:
            return self._operate_on_archived(verb, job_id)
        state = JobState(job.row.state)
        if verb == "cancel" and state is not JobState.RUNNING:
            self._archive(job, JobState.CANCELLED, "cancelled by alice")
            return True
        if verb in {"run now", "retry"} and state is JobState.SCHEDULED:
            return self._make_wait(job, JobState.PENDING, self.now)
        if verb == "postpone" and state in {JobState.PENDING, JobState.SCHEDULED}:
            until = self.now + value * SECOND
            if job.row.expires_at is None or job.row.expires_at > until:
                return self._make_wait(job, JobState.SCHEDULED, until)
        if verb == "set priority" and state is not JobState.RUNNING and job.row.priority != value:
            job.change(priority=value)
            return self._make_wait(job, state, job.row.available_at)
        if verb == "move" and state is not JobState.RUNNING and job.row.queue != value:
            job.change(queue=value)
            return self._make_wait(job, state, job.row.available_at)
        return False

    def _operate_on_archived(self, verb: str, job_id: int) -> bool:
        archived = self.archive[job_id]
        if verb == "discard" and archived.state == JobState.DEAD:
            self.archive[job_id] = archived._replace(
                state=JobState.CANCELLED, finished_at=self.now, reason="discarded by alice"
            )
            return True
        returns = {"retry", "redrive", "redrive with its attempts"}
        if verb not in returns or archived.state == JobState.COMPLETED:
            return False
        del self.archive[job_id]
        row = self.former.pop(job_id)._replace(
            state=JobState.PENDING, attempt=0, deaths=0, interruptions=0, lapses=0, expires_at=None, token=None,
            lease_expires_at=None, worker=None, has_begun=False,
        )  # fmt: skip
        if verb == "redrive with its attempts":
            row = row._replace(
                attempt=archived.attempt, max_attempts=max(row.max_attempts, archived.attempt + 1),
                deaths=archived.deaths, interruptions=archived.interruptions,
            )  # fmt: skip
        self.live[job_id] = Job(row)
        return self._make_wait(self.live[job_id], JobState.PENDING, self.now)

    def _make_wait(self, job: Job, state: JobState, available_at: int) -> bool:
        order = self._order(job.row.queue, job.row.priority, available_at)
        job.change(state=state, available_at=available_at, claim_order=order)
        return True

    def held_by(self, worker: int) -> set[tuple[int, int]]:
        """Job ids and tokens that a worker holds."""
        rows = [job.row for job in self._in_state(JobState.RUNNING)]
        return {(row.id, row.token) for row in rows if row.worker == worker and row.token is not None}

    # ------------------------------------------------------------------------------------------------ reading

    def live_rows(self) -> list[LiveRow]:
        return sorted(job.row for job in self.live.values())

    def archived_rows(self) -> list[ArchivedRow]:
        return sorted(self.archive.values())

    def execution_rows(self) -> list[ExecutionRow]:
        return sorted(self.executions)

    # ------------------------------------------------------------------------------------------------ parts

    def _in_state(self, state: JobState) -> list[Job]:
        return [job for job in self.live.values() if job.row.state == state]

    def _is_overdue(self, job: Job) -> bool:
        return job.row.expires_at is not None and job.row.expires_at <= self.now

    def _order(self, queue: int, priority: int, available_at: int) -> int:
        return available_at - priority * self.ageing[queue] * SECOND

    def _archive(
        self, job: Job, state: JobState, reason: str | None, result: str | None = None, error_class: str | None = None
    ) -> None:
        row = self.former[job.row.id] = self.live.pop(job.row.id).row
        self.archive[row.id] = ArchivedRow(
            row.id, state, row.attempt, row.deaths, row.interruptions, self.now, reason, result, error_class
        )
