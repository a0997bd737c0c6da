"""Set jobs of unknown types aside, and bring them back when a worker knows their type."""

from functools import partial

from django_pgbroker import telemetry
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.registry import registry
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.unknown_types import Moved, park_unknown_jobs, wake_known_jobs


class UnknownTypes(Duty):
    """Claims pass over types they do not know; a queue whose head is full of them would make every claim dear."""

    name = "unknown_types"
    interval_seconds = 15

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Wake up to ``batch`` jobs and park up to ``batch`` jobs."""
        woken = wake_known_jobs(gateway, batch)
        parked = park_unknown_jobs(gateway, batch, registry.names())
        woken_count = sum(queue.jobs for queue in woken)
        parked_count = sum(job_type.jobs for job_type in parked)
        return Swept(
            woken_count + parked_count,
            has_more=max(woken_count, parked_count) >= batch,
            woken_queues=frozenset(queue.name for queue in woken),
            reports=tuple(_report(job_type) for job_type in parked),
        )


def _report(parked: Moved) -> partial[None]:
    return partial(
        telemetry.warning,
        "job_type.unknown",
        "no live worker knows this job type; its jobs wait until one does: deploy or start a worker that has it",
        job_type=parked.name,
        jobs=parked.jobs,
    )
