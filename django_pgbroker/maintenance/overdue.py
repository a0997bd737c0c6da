"""Find running jobs that nobody stops although their time-out has long passed."""

from functools import partial

from django_pgbroker import telemetry
from django_pgbroker.conf import get_settings
from django_pgbroker.domain.records import OverdueJob
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.overdue import find_overdue_jobs, take_back_overdue_jobs

#: What a worker needs beyond the grace to notice a time-out and to have its verdict recorded.
_MARGIN_SECONDS = 30.0


class Overdue(Duty):
    """Jobs whose worker keeps the lease and does not stop the handler: taken back, or only told, by setting."""

    name = "overdue"
    interval_seconds = 15.0

    def __init__(self) -> None:
        settings = get_settings()
        self._takes_back = settings.take_back_overdue
        self._margin = settings.stop_grace_seconds + max(_MARGIN_SECONDS, 2 * settings.heartbeat_seconds)
        self._told: set[int] = set()

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Take up to ``batch`` jobs back, or tell of those that were not told of before."""
        overdue = find_overdue_jobs(gateway, batch, self._margin)
        if not overdue:
            self._told.clear()
            return Swept(0)
        if self._takes_back:
            taken = take_back_overdue_jobs(gateway, overdue)
            told = [job for job in overdue if job.id in taken]
            reports = tuple(_report(job, "its worker did not stop it; taken back") for job in told)
            return Swept(len(taken), has_more=len(taken) >= batch, reports=reports)
        fresh = [job for job in overdue if job.lease_token not in self._told]
        self._told = {job.lease_token for job in overdue}
        return Swept(0, reports=tuple(_report(job, "its worker does not stop it") for job in fresh))


def _report(job: OverdueJob, message: str) -> partial[None]:
    return partial(
        telemetry.error,
        "job.overdue",
        f"runs {job.seconds_over:.0f} s beyond its time-out: {message}",
        job=job.id,
        job_type=job.job_type,
        queue=job.queue,
        worker=job.worker_id,
        attempt=job.attempt,
    )
