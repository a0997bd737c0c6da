"""Make scheduled jobs pending when their time has come, for queues that no worker looks after at the moment."""

from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.due_queues import find_due_queues
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.promote import promote_jobs


class Promoter(Duty):
    """Scheduled to pending. Workers promote in their own queues too; both may, at once."""

    name = "promoter"
    interval_seconds = 15
    is_routine = True

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Promote up to ``batch`` jobs, shared out evenly so that one full queue cannot hold up the others."""
        queues = find_due_queues(gateway)
        if not queues:
            return Swept(0)
        share = max(batch // len(queues), 1)
        moved = {queue.name: promote_jobs(gateway, queue.id, share).moved for queue in queues}
        return Swept(
            sum(moved.values()),
            has_more=any(count >= share for count in moved.values()),
            woken_queues=frozenset(name for name, count in moved.items() if count),
        )
