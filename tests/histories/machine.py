"""The rules by which hypothesis writes a history. After every step the tables must equal the model."""

from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from django_pgbroker.domain.backoff import Constant
from django_pgbroker.domain.job_spec import JobSpec
from django_pgbroker.domain.options import Instant
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verdicts import (
    LOST_WAITING,
    Cancel,
    Retry,
    Snooze,
    interrupt,
    judge_error,
    judge_result,
    release,
)
from django_pgbroker.operations import job_verbs
from django_pgbroker.store.enqueue import enqueue_job
from django_pgbroker.store.expire import expire_jobs
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.pause import pause_queue, resume_queue
from django_pgbroker.store.promote import NO_FLOOR, promote_jobs
from django_pgbroker.store.reclaim import find_claims_of_worker, reclaim_jobs
from django_pgbroker.store.renew import renew_leases
from django_pgbroker.worker.lane import Lane
from django_pgbroker.worker.turn import take_turn
from tests.histories.database import JOB_TYPES, LEASE_SECONDS, NOON, QUEUES, WORKERS, BrokerOfHistories
from tests.histories.model import SECOND, Model

#: What a handler may come to, given its claim.
VERDICTS: dict[str, Callable[[ClaimedJob], Verdict]] = {
    "completes": lambda claim: judge_result(claim, None, 5, 1000),
    "returns a value": lambda claim: judge_result(claim, claim.id, 5, 1000),
    "fails": lambda claim: judge_error(claim, ValueError("no"), 5, Constant(20)),
    "fails and may go on at once": lambda claim: judge_error(claim, ValueError("no"), 5, Constant(0)),
    "asks for a retry": lambda claim: judge_error(claim, Retry(40, "later"), 5, Constant(0)),
    "snoozes": lambda claim: judge_error(claim, Snooze(15, "tired"), 5, Constant(0)),
    "cancels": lambda claim: judge_error(claim, Cancel("pointless"), 5, Constant(0)),
    "is released": release,
    "is interrupted": lambda claim: interrupt(claim, "the worker had to stop"),
}


class Order(NamedTuple):
    """Jobs that a producer stores one by one."""

    count: int
    queue: str
    job_type: str
    priority: int
    delay: int
    expires: int | None
    max_attempts: int


#: What an operator may do to jobs, given ids and a queue; and the number that the model is told.
VERBS: dict[str, tuple[Callable[[list[int], str], VerbReport], int]] = {
    "cancel": (lambda ids, _: job_verbs.cancel_jobs(ids, actor="alice"), 0),
    "run now": (lambda ids, _: job_verbs.run_jobs_now(ids, actor="alice"), 0),
    "retry": (lambda ids, _: job_verbs.retry_jobs(ids, actor="alice"), 0),
    "redrive": (lambda ids, _: job_verbs.redrive_jobs(ids, actor="alice"), 0),
    "redrive with its attempts": (lambda ids, _: job_verbs.redrive_jobs(ids, keep_attempts=True, actor="alice"), 0),
    "discard": (lambda ids, _: job_verbs.discard_jobs(ids, actor="alice"), 0),
    "postpone": (lambda ids, _: job_verbs.postpone_jobs(ids, delay=30, actor="alice"), 30),
    "set priority": (lambda ids, _: job_verbs.set_job_priorities(ids, 7, actor="alice"), 7),
    "move": (lambda ids, queue: job_verbs.move_jobs(ids, queue, actor="alice"), 0),
}

queues = st.sampled_from(list(QUEUES))
workers = st.integers(0, WORKERS - 1)
batches = st.integers(1, 6)

#: What a producer asks for; times are seconds.
orders = st.builds(
    Order,
    count=st.integers(1, 3),
    queue=queues,
    job_type=st.sampled_from(JOB_TYPES),
    priority=st.sampled_from([0, 0, 1, -2, 100]),
    delay=st.sampled_from([0, 0, 0, 10, 100]),
    expires=st.sampled_from([None, None, 5, 60]),
    max_attempts=st.integers(1, 3),
)

#: Which claims end, counted from the newest of the worker, and how.
endings = st.lists(st.tuples(st.integers(0, 12), st.sampled_from(list(VERDICTS))), min_size=1, max_size=6)

#: Where a worker looks: queue, batch, how many begin, whether it promotes first.
looks = st.lists(
    st.tuples(queues, batches, batches, st.booleans()), min_size=1, max_size=2, unique_by=lambda look: look[0]
)
known_types = st.sampled_from([JOB_TYPES, JOB_TYPES, JOB_TYPES[:1]])

type Endings = list[tuple[int, str]]
type Looks = list[tuple[str, int, int, bool]]

#: A reclaimed job waits by full jitter; the bound of its first attempts.
_LONGEST_BACKOFF = 256 * SECOND


class Histories(RuleBasedStateMachine):
    """One history.

    Args:
        broker: its jobs are emptied first.
    """

    #: Over all histories of this process.
    steps = 0

    def __init__(self, broker: BrokerOfHistories) -> None:
        super().__init__()
        self.broker = broker
        broker.empty()
        ageing = {broker.queues[name]: seconds for name, seconds in QUEUES.items()}
        self.model = Model(ageing, round(LEASE_SECONDS * SECOND), NOON)
        broker.set_clock(NOON)
        #: Claims of each worker, also those it does not know to have lost or has already given back.
        self.claims: list[list[ClaimedJob]] = [[] for _ in range(WORKERS)]
        self.last_token = 0
        self.caller = CallerGateway("default")

    # ------------------------------------------------------------------------------------------------ producers

    @initialize(orders=st.lists(orders, min_size=4, max_size=12))
    def begin(self, orders: list[Order]) -> None:
        for order in orders:
            self.enqueue(order)

    @rule(order=orders)
    def enqueue(self, order: Order) -> None:
        count, queue, job_type, priority, delay, expires, max_attempts = order
        spec = JobSpec(
            queue, job_type, "default", 1, priority, max_attempts, 60, Instant(seconds=delay or None),
            Instant(seconds=expires), Instant(), None, None,
        )  # fmt: skip
        for _ in range(count):
            job_id = enqueue_job(self.caller, spec, "{}")
            assert job_id is not None
            self.model.enqueue(
                job_id,
                queue=self.broker.queues[queue],
                job_type=self.broker.job_types[job_type],
                priority=priority,
                delay=delay * SECOND,
                expires=None if expires is None else expires * SECOND,
                max_attempts=max_attempts,
            )

    # ------------------------------------------------------------------------------------------------ workers

    @rule(worker=workers, endings=endings, looks=looks, types=known_types)
    def turn(self, worker: int, endings: Endings, looks: Looks, types: tuple[str, ...]) -> None:
        """Acknowledge and claim in one transaction, as a worker does; some claims may be long lost or ended."""
        self._take_turn(worker, endings, looks, types)

    @rule(worker=workers, looks=looks, types=known_types)
    def claim(self, worker: int, looks: Looks, types: tuple[str, ...]) -> None:
        self._take_turn(worker, [], looks, types)

    @rule(worker=workers, endings=endings)
    def finish(self, worker: int, endings: Endings) -> None:
        self._take_turn(worker, endings, [], JOB_TYPES)

    def _take_turn(self, worker: int, endings: Endings, looks: Looks, types: tuple[str, ...]) -> None:
        session = self.broker.sessions[worker]
        known = [self.broker.job_types[name] for name in types]
        job_type_ids = "{" + ",".join(map(str, known)) + "}"
        verdicts = self._judge(worker, endings)
        asked = [
            Lane(name, 1, self.broker.queues[name], 1, 1, job_type_ids=job_type_ids)
            .look(batch, 1.0, begin)
            ._replace(promote_floor=NO_FLOOR if promotes else None)
            for name, batch, begin, promotes in looks
        ]

        report = take_turn(session, verdicts, asked)

        stale = {verdict.job_id for verdict in sorted(verdicts) if not self.model.acknowledge(verdict)}
        assert report.acknowledged == (frozenset(), stale)
        for found in report.found:
            queue_id = found.look.lane.queue_id
            if found.promotion is not None:
                self._compare_promotion(found.promotion, self.model.promote(queue_id, found.look.batch))
            expected = self.model.claimable(queue_id, known, found.look.batch, found.look.begin)
            assert [claim.id for claim in found.claims if claim.has_begun] == expected.begun
            assert [claim.id for claim in found.claims if not claim.has_begun] == expected.waiting
            assert {claim.left_behind for claim in found.claims} <= {expected.left_behind}
            self._take_in(worker, found.claims)

    def _judge(self, worker: int, endings: Endings) -> list[Verdict]:
        claims = self.claims[worker]
        chosen = {claims[-1 - number % len(claims)]: ending for number, ending in endings} if claims else {}
        verdicts = [VERDICTS[ending](claim) for claim, ending in chosen.items()]
        # One verdict a job: a worker holds only one claim of it.
        return list({verdict.job_id: verdict for verdict in verdicts}.values())

    def _take_in(self, worker: int, claims: list[ClaimedJob]) -> None:
        tokens = sorted(claim.lease_token for claim in claims)
        assert not tokens or tokens[0] > self.last_token, "fencing tokens only grow"
        assert len(set(tokens)) == len(tokens)
        self.last_token = max([self.last_token, *tokens])
        for claim in claims:
            worker_id = self.broker.sessions[worker].worker_id
            self.model.claim(claim.id, claim.lease_token, worker_id, has_begun=claim.has_begun)
            assert claim.attempt == self.model.live[claim.id].row.attempt
        self.claims[worker] += claims

    @rule(worker=workers, waiting=st.integers(0, 3))
    def renew(self, worker: int, waiting: int) -> None:
        """A heartbeat, also for claims that are lost; the last of them wait for a slot."""
        newest = {claim.id: claim for claim in self.claims[worker]}
        if newest:
            begun = sorted(newest)[: len(newest) - waiting]
            report = renew_leases(self.broker.gateway, list(newest.values()), begun, LEASE_SECONDS)
            stale = self.model.renew([(claim.id, claim.lease_token) for claim in newest.values()], begun)
            assert report == (frozenset(), stale, frozenset())

    @rule(worker=workers)
    def die(self, worker: int) -> None:
        """The worker is killed: what it held is known to the database alone."""
        self.claims[worker].clear()

    @rule(worker=workers)
    def die_and_be_missed(self, worker: int) -> None:
        self.die(worker)
        self.pass_time(LEASE_SECONDS + 1)
        self._reclaim(1000)

    @rule(worker=workers)
    def look_up_what_a_worker_holds(self, worker: int) -> None:
        worker_id = self.broker.sessions[worker].worker_id
        assert find_claims_of_worker(self.broker.gateway, worker_id) == self.model.held_by(worker_id)

    # ------------------------------------------------------------------------------------------------ time and duties

    @rule(seconds=st.sampled_from([1, 5, 10, 20, 31, 50, 100, 86_400 * 40]))
    def pass_time(self, seconds: float) -> None:
        self.model.now += round(seconds * SECOND)
        self.broker.set_clock(self.model.now)

    @rule(duty=st.sampled_from(["reclaim", "expire", "promote"]), queue=queues, batch=st.sampled_from([1, 3, 1000]))
    def sweep(self, duty: str, queue: str, batch: int) -> None:
        if duty == "reclaim":
            self._reclaim(batch)
        elif duty == "expire":
            assert set(expire_jobs(self.broker.gateway, batch)) == self.model.expire(batch)
        else:
            queue_id = self.broker.queues[queue]
            promotion = promote_jobs(self.broker.gateway, queue_id, batch)
            self._compare_promotion(promotion, self.model.promote(queue_id, batch))

    def _reclaim(self, batch: int) -> None:
        lapsed = self.model.lapsed(batch)
        reclaimed = reclaim_jobs(self.broker.gateway, batch)
        assert [job.id for job in reclaimed] == [row.id for row in lapsed]
        for row, job in zip(lapsed, reclaimed, strict=True):
            assert row.token is not None
            is_spent = row.has_begun and row.attempt >= row.max_attempts
            delay = 0 if is_spent else self.broker.read_start(row.id) - self.model.now
            assert 0 <= delay <= (_LONGEST_BACKOFF if row.has_begun else 0)
            expected = JobState.DEAD if is_spent else JobState.SCHEDULED if row.has_begun else JobState.PENDING
            assert job.next_state is expected
            reason = "worker lost" if row.has_begun else LOST_WAITING
            lost = Verdict(row.id, row.token, Outcome.LOST, expected, delay / SECOND, reason=reason)
            assert self.model.acknowledge(lost)

    def _compare_promotion(self, promotion: Any, expected: tuple[int, int | None]) -> None:
        moved, due_in = expected
        assert promotion.moved == moved
        seconds = promotion.next_due_seconds
        assert (seconds is None) == (due_in is None)
        assert due_in is None or abs(seconds * SECOND - due_in) < 2

    # ------------------------------------------------------------------------------------------------ operators

    @rule(queue=queues, pauses=st.sampled_from([True, False, False]))
    def pause_or_resume(self, queue: str, pauses: bool) -> None:
        queue_id = self.broker.queues[queue]
        was_paused = queue_id in self.model.paused
        change = pause_queue if pauses else resume_queue
        assert change(self.caller, queue, "alice", "test", None) == (pauses is not was_paused)
        (self.model.paused.add if pauses else self.model.paused.discard)(queue_id)

    @rule(verb=st.sampled_from(list(VERBS)), numbers=st.lists(st.integers(0, 40), min_size=1, max_size=4), queue=queues)
    def operate(self, verb: str, numbers: list[int], queue: str) -> None:
        """A verb on some jobs, live or finished; of running ones none, for a cancel is their worker's business too."""
        running = {job_id for job_id, job in self.model.live.items() if job.row.state == JobState.RUNNING}
        known = sorted((self.model.live.keys() | self.model.archive.keys()) - running)
        if not known:
            return
        chosen = sorted({known[-1 - number % len(known)] for number in numbers})
        call, value = VERBS[verb]
        if verb == "move":
            value = self.broker.queues[queue]
        report = call(chosen, queue)
        assert set(report.ids) == self.model.operate(verb, chosen, value)
        assert report.changed + report.refused == len(chosen)

    # ------------------------------------------------------------------------------------------------ after each step

    @invariant()
    def the_tables_equal_the_model(self) -> None:
        Histories.steps += 1
        found = self.broker.read()
        assert found.live == self.model.live_rows()
        assert found.archived == self.model.archived_rows()
        assert found.executions == self.model.execution_rows()
        assert found.payloads == sorted(self.model.live)
        outcomes = [execution.outcome for execution in self.model.executions]
        assert found.counted == {outcome: outcomes.count(outcome) for outcome in set(outcomes)}
