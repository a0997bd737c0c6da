"""Give the jobs of dead and stalled workers back to the queue."""

from functools import partial

from django_pgbroker import telemetry
from django_pgbroker.conf import get_settings
from django_pgbroker.domain.records import ReclaimedJob
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.registry import registry
from django_pgbroker.runtime.signal_sender import Sending, send_later
from django_pgbroker.signals import job_dead, job_lost
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
            reports=(*(_report(job) for job in reclaimed), partial(_send_signals, reclaimed)),
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


def _send_signals(reclaimed: list[ReclaimedJob]) -> None:
    """Tell the receivers of ``job_lost`` and, where it was the last attempt, of ``job_dead``."""
    if not (job_lost.receivers or job_dead.receivers):
        return
    for job in reclaimed:
        sender = registry.get(job.job_type) if registry.knows(job.job_type) else None
        told = {
            "job_id": job.id,
            "job_type": job.job_type,
            "queue": job.queue,
            "tenant": None,
            "attempt": job.attempt,
        }
        send_later([Sending(job_lost, sender, {**told, "next_state": job.next_state, "worker_id": job.worker_id})])
        if job.next_state is JobState.DEAD:
            ended = {"outcome": Outcome.LOST, "reason": "worker lost", "error": None, "run_seconds": None}
            send_later([Sending(job_dead, sender, told | ended)])
