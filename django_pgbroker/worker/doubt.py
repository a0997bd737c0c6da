"""After a lost connection: which verdicts were recorded, and which claims were granted, by the turn in doubt."""

from collections.abc import Sequence

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.store.reclaim import find_claims_of_worker, find_recorded_claims
from django_pgbroker.worker.session import Session
from django_pgbroker.worker.turn import take_turn


def settle_doubt(session: Session, claims: Sequence[ClaimedJob], verdicts: Sequence[Verdict]) -> set[int]:
    """Compare what this process holds with what the database says it holds.

    Claims that the database granted and whose answer was lost are released uncounted: they never began.

    Args:
        session: newly connected.
        claims: what the process holds, verdicts of a turn in doubt included.
        verdicts: those that wait to be acknowledged.

    Returns:
        The ids of jobs whose verdicts had been recorded.

    Raises:
        psycopg.Error: the database went away again.
    """
    recorded = find_recorded_claims(session.gateway, [(each.job_id, each.lease_token) for each in verdicts])
    held = {(claim.id, claim.lease_token) for claim in claims}
    strays = find_claims_of_worker(session.gateway, session.worker_id) - held
    if strays:
        released = [Verdict(job_id, token, Outcome.RELEASED, JobState.PENDING) for job_id, token in strays]
        take_turn(session, released, ())
    if recorded or strays:
        telemetry.info("turn.settled", "the last turn before the loss", recorded=len(recorded), released=len(strays))
    return {job_id for job_id, _ in recorded}
