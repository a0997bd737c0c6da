"""One turn: acknowledge what finished, release what waited for it, claim for the free slots. One short transaction."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import psycopg

from django_pgbroker import telemetry
from django_pgbroker.domain.progress import ProgressReport
from django_pgbroker.domain.records import AckReport, ClaimedJob, Promotion, Verdict
from django_pgbroker.domain.states import JobState
from django_pgbroker.store.acknowledge import read_ack_report, send_acknowledge_jobs
from django_pgbroker.store.claim import read_claimed_jobs, send_claim_jobs
from django_pgbroker.store.complete import send_count_completed_jobs
from django_pgbroker.store.dependants import read_woken_queues, send_release_dependants
from django_pgbroker.store.progress import send_record_progress
from django_pgbroker.store.promote import read_promotion, send_promote_jobs
from django_pgbroker.worker.lane import Look
from django_pgbroker.worker.session import Session

_NOTHING = AckReport(frozenset(), frozenset())


class Found:
    """What one look brought; its rows are read when they are asked for.

    Args:
        look: that was sent.
        claim: its answer, which has arrived.
        promotion: the answer of its promotion, if there was one.
    """

    def __init__(self, look: Look, claim: psycopg.Cursor[Any], promotion: psycopg.Cursor[Any] | None) -> None:
        self.look = look
        self._claim = claim
        self._promotion = promotion

    def __len__(self) -> int:
        """How many jobs were claimed."""
        return self._claim.rowcount

    @cached_property
    def claims(self) -> list[ClaimedJob]:
        """The jobs."""
        return read_claimed_jobs(self._claim)

    @cached_property
    def promotion(self) -> Promotion | None:
        """What was promoted before."""
        return read_promotion(self._promotion) if self._promotion else None


class TurnReport(NamedTuple):
    """What one turn did: the exceptions of its acknowledge, what its looks found, and queues that have new work.

    ``progressed`` are the exceptions of what it wrote of the progress of running jobs.
    """

    acknowledged: AckReport
    found: list[Found]
    woken_queues: list[str]
    progressed: AckReport = _NOTHING


def take_turn(  # noqa: PLR0917
    session: Session,
    verdicts: Sequence[Verdict],
    looks: Sequence[Look],
    meanwhile: Callable[[], None] = lambda: None,
    reports: Sequence[ProgressReport] = (),
    recorded: Sequence[Verdict] = (),
) -> TurnReport:
    """Acknowledge ``verdicts`` and claim what ``looks`` ask for, in one pipelined transaction.

    Args:
        session: of the worker.
        verdicts: one a job, may be empty.
        looks: may be empty; the claims come last, so that they never wait for a lock while they hold rows.
        meanwhile: called when all is sent, while the server works; it must not use the session.
        reports: progress, one a job; written first, so that the last one of a job that has ended is kept.
        recorded: of transactional jobs, which are only counted, and what waited for them released.

    Raises:
        psycopg.OperationalError: the connection was lost; whether the turn was committed is in doubt.
        psycopg.DataError: a verdict cannot be stored; nothing was done.
    """
    gateway = session.gateway
    progressed = acknowledged = released = None
    sent = []
    with gateway.pipelined_transaction(meanwhile):
        if reports:
            progressed = send_record_progress(gateway, reports)
        if verdicts:
            acknowledged = send_acknowledge_jobs(gateway, verdicts)
        if recorded:
            send_count_completed_jobs(gateway, recorded)
        completed = [each.job_id for each in (*verdicts, *recorded) if each.next_state is JobState.COMPLETED]
        if completed:
            released = send_release_dependants(gateway, sorted(completed))
        for look in looks:
            promotion = None
            if look.promote_floor is not None:
                promotion = send_promote_jobs(gateway, look.lane.queue_id, look.batch, look.promote_floor)
            claim = send_claim_jobs(
                gateway,
                queue_id=look.lane.queue_id,
                job_type_ids=look.lane.job_type_ids,
                batch=look.batch,
                begin=look.begin,
                lease_seconds=session.options.settings.lease_seconds,
                worker_id=session.worker_id,
                floor=look.floor,
            )
            sent.append((look, claim, promotion))
    return TurnReport(
        acknowledged=read_ack_report(acknowledged) if acknowledged else _NOTHING,
        found=[Found(*each) for each in sent],
        woken_queues=read_woken_queues(released) if released else [],
        progressed=read_ack_report(progressed) if progressed else _NOTHING,
    )


def take_safe_turn(  # noqa: PLR0917
    session: Session,
    verdicts: Sequence[Verdict],
    looks: Sequence[Look],
    meanwhile: Callable[[], None] = lambda: None,
    reports: Sequence[ProgressReport] = (),
    recorded: Sequence[Verdict] = (),
) -> TurnReport:
    """As ``take_turn``; where a verdict cannot be stored, its claims wait and the verdicts are recorded one by one."""
    try:
        return take_turn(session, verdicts, looks, meanwhile, reports, recorded)
    except psycopg.DataError:
        first = take_turn(session, (), (), reports=reports, recorded=recorded)
        return _join(first, acknowledge_apart(session, verdicts))


def acknowledge_apart(session: Session, verdicts: Sequence[Verdict]) -> TurnReport:
    """Acknowledge verdicts of which one cannot be stored: halve until it is alone, and record that one bare.

    Args:
        session: of the worker.
        verdicts: one a job.

    Raises:
        psycopg.OperationalError: the connection was lost.
        psycopg.DataError: even without its texts a verdict cannot be stored: a fault of the broker.
    """
    try:
        return take_turn(session, verdicts, ())
    except psycopg.DataError as error:
        if len(verdicts) > 1:
            middle = len(verdicts) // 2
            return _join(acknowledge_apart(session, verdicts[:middle]), acknowledge_apart(session, verdicts[middle:]))
        telemetry.error("verdict.not_stored", f"recorded without its texts: {error}".strip(), job=verdicts[0].job_id)
        reason = f"result or error not stored: SQLSTATE {error.sqlstate}"
        return take_turn(session, [verdicts[0]._replace(result=None, error=None, reason=reason)], ())


def _join(first: TurnReport, second: TurnReport) -> TurnReport:
    return TurnReport(
        AckReport(
            first.acknowledged.busy | second.acknowledged.busy, first.acknowledged.stale | second.acknowledged.stale
        ),
        [*first.found, *second.found],
        [*first.woken_queues, *second.woken_queues],
        first.progressed,
    )
