"""Run a transactional job: the handler's writes, the jobs it enqueues and the acknowledge are one commit."""

from collections.abc import Callable
from typing import Any

from django.db import transaction

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.stops import JobStopped, Stop, StopKind
from django_pgbroker.store.complete import CANCELLED, STALE, complete_job
from django_pgbroker.store.errors import find_sqlstate
from django_pgbroker.store.gateway import CallerGateway

_STOPS = {
    STALE: Stop(StopKind.LOST, "the claim was over before the commit; all was rolled back"),
    CANCELLED: Stop(StopKind.CANCELLED, "cancelled before the commit; all was rolled back"),
}


def run_atomic(claim: ClaimedJob, alias: str, call: Callable[[], Any], judge: Callable[[Any], Verdict]) -> Verdict:
    """Run a handler in a transaction that its acknowledge closes.

    Where the commit fails, or nobody knows whether it has, the caller's verdict is refused by the fence if it has.

    Args:
        claim: the job.
        alias: the database that holds the jobs.
        call: runs the handler.
        judge: makes the verdict of what it returned.

    Returns:
        The verdict, recorded already.

    Raises:
        BaseException: as the handler raised, or the commit; nothing of the handler's is in the database, unless the
            connection was lost in the commit.
    """
    committed: list[bool] = []
    try:
        with transaction.atomic(using=alias, durable=True):
            # the first hook: it runs before one of the handler's can raise
            transaction.on_commit(lambda: committed.append(True), using=alias)
            verdict = judge(call())
            complete_job(CallerGateway(alias), verdict)
    except BaseException as error:
        if not committed:
            if stop := _STOPS.get(find_sqlstate(error) or ""):
                raise JobStopped(stop) from error
            raise
        telemetry.error(
            "job.raised_after_commit", f"completed; then {type(error).__name__}", exc_info=error, job=claim.id,
            token=claim.lease_token,
        )  # fmt: skip
    return verdict._replace(is_recorded=True)
