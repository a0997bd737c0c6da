"""After a lost connection: which verdicts were recorded, and which claims were granted, by the turn in doubt."""

import time
from collections.abc import Sequence

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.store.reclaim import find_claims_of_worker, find_recorded_claims
from django_pgbroker.worker.session import Session
from django_pgbroker.worker.turn import take_turn

#: When to look again after a reconnect through a pooler. PgBouncer lets a turn wait for a server connection for two
#: minutes (``query_wait_timeout``), and may send it on although its client has gone away meanwhile.
_LATE_SECONDS = (1, 5, 15, 30, 60, 125)


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
    released = _release_strays(session, claims)
    if recorded or released:
        telemetry.info("turn.settled", "the last turn before the loss", recorded=len(recorded), released=released)
    return {job_id for job_id, _ in recorded}


class LateTurns:
    """Finds what a lost turn has claimed that was committed after ``settle_doubt`` had looked.

    On a direct connection there is none: its server process is ended first. A pooler hides that process, so the worker
    looks a few times more. What is found later still is brought back by its lease.
    """

    def __init__(self) -> None:
        self._due_at: list[float] = []

    def expect(self, session: Session) -> None:
        """Begin to look, after a reconnect."""
        if session.gateway.process_id is None:
            self._due_at = [time.monotonic() + seconds for seconds in _LATE_SECONDS]

    @property
    def is_due(self) -> bool:
        """Whether it is time for a look."""
        return bool(self._due_at) and self._due_at[0] <= time.monotonic()

    def settle(self, session: Session, claims: Sequence[ClaimedJob]) -> None:
        """Release what the database says this worker holds and it does not.

        Args:
            session: between two turns.
            claims: what the process holds, all that the last turn has found included.

        Raises:
            psycopg.Error: the database went away again.
        """
        if not self.is_due:
            return
        del self._due_at[0]
        if released := _release_strays(session, claims):
            telemetry.info("turn.settled", "a turn from before the loss that came late", recorded=0, released=released)


def _release_strays(session: Session, claims: Sequence[ClaimedJob]) -> int:
    held = {(claim.id, claim.lease_token) for claim in claims}
    strays = find_claims_of_worker(session.gateway, session.worker_id) - held
    if strays:
        released = [Verdict(job_id, token, Outcome.RELEASED, JobState.PENDING) for job_id, token in strays]
        take_turn(session, released, ())
    return len(strays)
