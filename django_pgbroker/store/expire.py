"""End the jobs whose latest start has passed. Called by the expirer duty."""

from django_pgbroker.store.gateway import Gateway


def expire_jobs(gateway: Gateway, batch: int) -> list[int]:
    """Archive up to ``batch`` overdue jobs as *expired*, in paused queues too, and return their ids.

    A running job is never touched: its worker minds the deadline. Safe in any number of processes: a row that somebody
    else holds is skipped and seen again on the next tick.

    Raises:
        psycopg.Error: as the server answered; nothing has moved.
    """
    return [job_id for (job_id,) in gateway.fetch("expire_jobs", {"batch": batch})]
