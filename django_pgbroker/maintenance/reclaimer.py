"""Give the jobs of dead and stalled workers back to the queue."""

from functools import partial

from django_pgbroker import telemetry
from django_pgbroker.conf import get_settings
from django_pgbroker.domain.records import ReclaimedJob
from django_pgbroker.domain.states import JobState
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.reclaim import reclaim_jobs


class Reclaimer(Duty):
    """Running jobs whose lease has lapsed: back to their queue, or dead when their attempts are spent."""

    name = "reclaimer"

    def __init__(self) -> None:
        self.interval_seconds = get_settings().reclaim_interval_seconds

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Take up to ``batch`` jobs back."""
        reclaimed = reclaim_jobs(gateway, batch)
        return Swept(
            len(reclaimed),
            has_more=len(reclaimed) >= batch,
            woken_queues=frozenset(job.queue for job in reclaimed if job.next_state is JobState.PENDING),
            reports=tuple(_report(job) for job in reclaimed),
        )


def _report(job: ReclaimedJob) -> partial[None]:
    return partial(
        telemetry.warning,
        "lease.lapsed",
        "the worker of a job went silent; the job was taken back",
        job=job.id,
        job_type=job.job_type,
        worker=job.worker_id,
        attempt=job.attempt,
        next_state=job.next_state.label,
    )
