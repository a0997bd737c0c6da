"""Cancel one job: at once where it waits, by a mark that its worker obeys where it runs. For user code and handles."""

from enum import Enum

from django_pgbroker.domain import verbs
from django_pgbroker.operations.actors import Acting
from django_pgbroker.operations.named_changes import change_job, raise_refusal


class CancelResult(Enum):
    """What came of a cancel."""

    #: The job had not begun; it has ended.
    CANCELLED = "cancelled"
    #: The job runs. Its handler is asked to end, and it ends as cancelled whatever the handler comes to.
    REQUESTED = "requested"


def cancel_job(
    job_id: int, *, actor: Acting, reason: str | None = None, source: str = "code", using: str | None = None
) -> CancelResult:
    """Cancel one job, in the caller's transaction if there is one; its worker is told after the commit.

    A running handler hears of it at once where workers listen, else with the next heartbeat: ``ctx.should_stop()``
    turns true, a coroutine is cancelled, in a thread its SQL statement ends and ``JobStopped`` is raised at last; after
    ``STOP_GRACE_SECONDS`` it is given up. Asking again changes nothing; the first reason stays.

    Args:
        job_id: of the job.
        actor: who asks: a user of Django, whose permissions are checked, or a name for the audit and the reason.
        reason: why, up to 200 characters.
        source: where the wish came from, such as ``ui`` or ``command``.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Returns:
        Whether it has ended or is still asked to.

    Raises:
        JobFinished: it has ended already, and stays as it is.
        JobNotFound: there is no such job.
        NotPermitted: the user may not cancel it.
        InvalidOption: an id, actor, reason or source that no job or audit can have.
        BrokerDatabaseError: the database refused; nothing has changed.
    """
    report = change_job(verbs.CANCEL_JOB, job_id, actor=actor, reason=reason, source=source, using=using)
    raise_refusal(report)
    return CancelResult.REQUESTED if report.requested else CancelResult.CANCELLED
