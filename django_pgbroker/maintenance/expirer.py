"""End the jobs whose latest start has passed, in paused queues too."""

from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.expire import expire_jobs
from django_pgbroker.store.gateway import Gateway


class Expirer(Duty):
    """Overdue jobs to the archive. A claim refuses them by itself; this only says so in the history."""

    name = "expirer"
    interval_seconds = 15

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Archive up to ``batch`` overdue jobs as expired."""
        expired = len(expire_jobs(gateway, batch))
        return Swept(expired, has_more=expired >= batch)
