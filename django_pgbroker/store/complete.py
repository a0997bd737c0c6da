"""Complete a transactional job inside its handler's transaction, and count it afterwards."""

from collections.abc import Sequence

from django_pgbroker.domain.records import Verdict
from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.gateway import CallerGateway, Gateway

#: SQLSTATEs of the closing statement: the claim is over; somebody wants the job cancelled.
STALE = "PB001"
CANCELLED = "PB002"


def complete_job(gateway: CallerGateway, verdict: Verdict) -> None:
    """Record that a job is completed, behind its fencing token, in the transaction that ``gateway`` is in.

    Raises:
        psycopg.Error: ``STALE`` or ``CANCELLED``, or as the server answered; the transaction has failed.
    """
    params = {
        "id": verdict.job_id,
        "token": verdict.lease_token,
        "run_microseconds": verdict.run_microseconds,
        "result": verdict.result,
        "reason": verdict.reason,
    }
    gateway.send_closing("complete_job", params)


def send_count_completed_jobs(gateway: Gateway, verdicts: Sequence[Verdict]) -> None:
    """Send the counting of jobs that ``complete_job`` has recorded; for the worker's turn."""
    params = {
        "ids": array_of_integers(verdict.job_id for verdict in verdicts),
        "tokens": array_of_integers(verdict.lease_token for verdict in verdicts),
    }
    gateway.send("count_completed_jobs", params)
