"""The link of a handler that runs without a worker: it stops when the test says so."""

from collections.abc import Collection
from datetime import datetime

from django_pgbroker.domain.progress import Progress, ProgressReport
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.worker.context import JobContext
from django_pgbroker.worker.link import JobLink
from django_pgbroker.worker.steps import JobMemory

DRAINING = Stop(StopKind.DRAINING, "the test ends")


class LooseLink(JobLink):
    """Claims with these tokens should stop."""

    def __init__(self, stopping: Collection[int] = (), stop: Stop = DRAINING) -> None:
        self.stopping = stopping
        self.stop = stop
        self.heard: list[int] = []
        self.reports: list[ProgressReport] = []

    def find_stop(self, lease_token: int) -> Stop | None:
        return self.stop if lease_token in self.stopping else None

    def deadline_of(self, claim: ClaimedJob, elapsed_seconds: float) -> datetime | None:
        return None

    def beat(self, lease_token: int) -> None:
        self.heard.append(lease_token)

    def report_progress(self, job_id: int, lease_token: int, progress: Progress) -> None:
        self.reports.append(ProgressReport(job_id, lease_token, progress))

    def mark_memory(self, job_id: int, lease_token: int) -> None:
        self.reports.append(ProgressReport(job_id, lease_token, None))


def make_loose_context(claim: ClaimedJob) -> JobContext:
    """What the handler of a claim would be given."""
    link = LooseLink()

    def make_memory(claim: ClaimedJob) -> JobMemory:
        return JobMemory(claim.id, claim.lease_token, link, "default", 65_536)

    return JobContext(claim, "tests.fetch", "default", "acme", link=link, make_memory=make_memory)
