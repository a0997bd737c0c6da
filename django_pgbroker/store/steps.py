"""What a job remembers over its attempts, read and written on the handler's own connection."""

from django_pgbroker.store.gateway import CallerGateway

#: The cursor is kept beside the steps, under the one name that no step can have: read, fenced and deleted with them.
CURSOR = ""


def find_steps(gateway: CallerGateway, job_id: int) -> dict[str, str]:
    """Names of the finished steps of a job to their results as JSON text; the cursor, if any, under ``CURSOR``.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    return dict(gateway.fetch_guarded("find_steps", {"id": job_id}))


def record_step(gateway: CallerGateway, job_id: int, lease_token: int, name: str, result: str) -> bool:
    """Remember one step, or the cursor under ``CURSOR``, inside the handler's transaction if there is one.

    Args:
        gateway: of the handler.
        job_id: the running job.
        lease_token: of its claim.
        name: of the step.
        result: JSON as text.

    Returns:
        False when the claim is over: nothing was written.

    Raises:
        django.db.DatabaseError: as the server answered; the handler's other writes are untouched.
    """
    params = {"id": job_id, "token": lease_token, "name": name, "result": result}
    return bool(gateway.fetch_guarded("record_step", params))
