"""Cancel jobs: those that wait at once, those that run by a mark that their worker obeys. For user code and handles."""

from enum import Enum

from django.db import DatabaseError, InterfaceError

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import InvalidOption, JobFinished, JobNotFound
from django_pgbroker.domain.options import read_text, read_whole
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.runtime.announcer import announce_on_commit
from django_pgbroker.runtime.listener import name_cancel
from django_pgbroker.store import cancel
from django_pgbroker.store.errors import wrap_database_error
from django_pgbroker.store.gateway import CallerGateway, Params
from django_pgbroker.store.lookup import find_job

#: A job may begin, or go back to its queue, between two looks at it; that it does so again and again is no coincidence.
_MOST_LOOKS = 10

_LARGEST_ID = 2**63 - 1


class CancelResult(Enum):
    """What came of a cancel."""

    #: The job had not begun; it has ended.
    CANCELLED = "cancelled"
    #: The job runs. Its handler is asked to end, and it ends as cancelled whatever the handler comes to.
    REQUESTED = "requested"


def cancel_job(
    job_id: int, *, actor: str, reason: str | None = None, source: str = "code", using: str | None = None
) -> CancelResult:
    """Cancel one job, in the caller's transaction if there is one; its worker is told after the commit.

    A running handler hears of it at once where workers listen, else with the next heartbeat: ``ctx.should_stop()``
    turns true, a coroutine is cancelled, in a thread its SQL statement ends and ``JobStopped`` is raised at last; after
    ``STOP_GRACE_SECONDS`` it is given up. Asking again changes nothing; the first reason stays.

    Args:
        job_id: of the job.
        actor: who asks, for the audit and the reason.
        reason: why, up to 200 characters.
        source: where the wish came from, such as ``admin`` or ``command``.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Returns:
        Whether it has ended or is still asked to.

    Raises:
        JobFinished: it has ended already, and stays as it is.
        JobNotFound: there is no such job.
        InvalidOption: an id, actor, reason or source that no job or audit can have.
        BrokerDatabaseError: the database refused; nothing has changed.
    """
    if not read_text("actor", actor) or not read_text("source", source):
        raise InvalidOption("actor and source must say who cancels the job and from where")
    params = {
        "id": read_whole("job_id", job_id, 1, _LARGEST_ID),
        "actor": str(actor),
        "source": str(source),
        "reason": read_text("reason", reason),
    }
    gateway = open_caller_gateway(using or get_settings().database)
    try:
        return _cancel(gateway, params)
    except (DatabaseError, InterfaceError) as error:
        raise wrap_database_error(error, f"cancel job {job_id}") from error


def _cancel(gateway: CallerGateway, params: Params) -> CancelResult:
    job_id = params["id"]
    for _ in range(_MOST_LOOKS):
        if cancel.cancel_job(gateway, params):
            return CancelResult.CANCELLED
        if cancel.request_cancel(gateway, params):
            if get_settings().listen:
                announce_on_commit(gateway.alias, name_cancel(job_id), gateway.connection)
            return CancelResult.REQUESTED
        found = find_job(gateway, job_id)
        if found is None:
            raise JobNotFound(
                f"there is no job {job_id} in database {gateway.alias!r}: never committed, or its history is pruned"
            )
        if found.state.is_finished:
            raise JobFinished(f"job {job_id} is {found.state.label} already: there is nothing to cancel")
    raise DatabaseError(f"job {job_id} was never found in one state for long enough; try again")
