"""Cancel one job, with the audit entry in the same statement. Called by ``operations.cancel``."""

from django_pgbroker.store.gateway import CallerGateway, Params


def cancel_job(gateway: CallerGateway, params: Params) -> bool:
    """Archive a job that has not begun as cancelled; False when there is no such job.

    Args:
        gateway: the caller's.
        params: id, actor, source and reason.

    Raises:
        django.db.DatabaseError: as the server answered; nothing has changed.
    """
    return bool(gateway.fetch_guarded("cancel_job", params))


def request_cancel(gateway: CallerGateway, params: Params) -> bool:
    """Mark a running job as to be cancelled, unless it is already; False when it does not run.

    Args:
        gateway: the caller's.
        params: as for ``cancel_job``.

    Raises:
        django.db.DatabaseError: as the server answered; nothing has changed.
    """
    return bool(gateway.fetch_guarded("request_cancel", params))
