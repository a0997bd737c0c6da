"""Say of silent workers that they are lost, and forget those that stopped long ago."""

from functools import partial

from django_pgbroker import telemetry
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.presence import mark_lost_workers, prune_workers


class Presence(Duty):
    """The list of workers as people see it. What a lost worker held comes back by its lease, not by this."""

    name = "presence"
    interval_seconds = 10

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Mark up to ``batch`` silent workers and delete up to ``batch`` old rows."""
        lost = mark_lost_workers(gateway, batch)
        pruned = prune_workers(gateway, batch)
        reports = tuple(
            partial(
                telemetry.warning,
                "worker.lost",
                "a worker is silent; its jobs go to others when their leases lapse",
                worker=worker.name,
                id=worker.id,
                silent_seconds=round(worker.silent_seconds, 1),
            )
            for worker in lost
        )
        return Swept(len(lost) + pruned, has_more=len(lost) >= batch or pruned >= batch, reports=reports)
