"""Delete the counters by minute when they are seven days old."""

from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.sampling import prune_stats


class StatPruner(Duty):
    """A bounded past for ``stat_minute``."""

    name = "stat_pruner"
    interval_seconds = 600
    batch_size = 5000

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Delete up to ``batch`` counters."""
        pruned = prune_stats(gateway, batch)
        return Swept(pruned, has_more=pruned >= batch)
