"""Keep partitions of the history ready, so that no row lands in a default partition."""

from functools import partial

from django_pgbroker import telemetry
from django_pgbroker.conf import get_settings
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.partitions import ensure_partitions


class Partitioner(Duty):
    """Partitions for the present period and the coming days."""

    name = "partitioner"
    interval_seconds = 3600
    # Attaching locks the default partitions: each partition is committed by itself, never held for the next one.
    in_transaction = False

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Create what is missing; all of it, whatever the batch."""
        settings = get_settings()
        created = ensure_partitions(gateway, settings.partition_period, settings.partition_days_ahead)
        report = partial(telemetry.info, "partition.created", "new partitions for the history", names=",".join(created))
        return Swept(len(created), reports=(report,) if created else ())
