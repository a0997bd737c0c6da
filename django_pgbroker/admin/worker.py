"""The screen of workers: who is alive, what each may run, what it runs now."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from django_pgbroker.admin import worker_acts
from django_pgbroker.admin.acting import ActingScreen
from django_pgbroker.admin.audit_sections import audit_sections
from django_pgbroker.admin.display import NOTHING, badge, duration_between, exact_moment, link, moment
from django_pgbroker.admin.filters import StoppedFilter
from django_pgbroker.admin.offers import offers
from django_pgbroker.admin.section import Section, Table
from django_pgbroker.domain.durations import describe_seconds
from django_pgbroker.domain.presence import describe_queues
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import Job, JobType, Worker
from django_pgbroker.models.clock import Clock
from django_pgbroker.operations.audit_log import AuditQuery
from django_pgbroker.operations.overview import presence_of

_SHOWN_JOBS = 100


@admin.register(Worker)
@offers(*worker_acts.ALL)
class WorkerScreen(ActingScreen):
    """Worker processes, the latest started first."""

    list_display = ("name", "presence", "heartbeat", "running", "queue_names", "started", "ended")
    list_filter = (StoppedFilter,)
    search_fields = ()
    note = "Worker processes, the latest started first. Rows of stopped ones are kept for a week."
    empty_note = "No worker has started yet. Start one with: manage.py pgbroker_worker"

    def index_serves(self, chosen: Any) -> bool:
        """The table is small."""
        return True

    def heading_of(self, obj: Worker) -> str:
        """Its name."""
        return f"Worker {obj.name}"

    @admin.display(description="presence")
    def presence(self, worker: Any) -> SafeString:
        """Alive, draining, lost or stopped."""
        return badge(presence_of(worker, worker.read_at).value)

    @admin.display(description="heartbeat")
    def heartbeat(self, worker: Any) -> SafeString | str:
        """How long ago it last reported."""
        return moment(worker.heartbeat_at, worker.read_at)

    @admin.display(description="running")
    def running(self, worker: Worker) -> str:
        """Busy slots of all its slots, at its last heartbeat."""
        return f"{worker.running_count}/{worker.concurrency}"

    @admin.display(description="queues")
    def queue_names(self, worker: Worker) -> str:
        """The queues it serves, with their weights."""
        return describe_queues(worker.queues) or NOTHING

    @admin.display(description="started")
    def started(self, worker: Any) -> SafeString | str:
        """How long ago it started."""
        return moment(worker.started_at, worker.read_at)

    @admin.display(description="stopped")
    def ended(self, worker: Any) -> SafeString | str:
        """How long ago it stopped or was found dead."""
        return moment(worker.stopped_at, worker.read_at)

    def sections(self, request: HttpRequest, obj: Any) -> list[Section]:
        """Presence, what it serves, the job types it knows, what it runs now."""
        known = JobType.objects.filter(pk__in=obj.job_type_ids).values_list("name", flat=True)
        sections = [
            Section("Worker", self._facts(obj)),
            Section("Times", self._times(obj)),
            Section("Job types it knows", text="\n".join(known) or "none"),
        ]
        if request.user.has_perm("django_pgbroker.view_job"):
            sections.insert(2, self._running_jobs(obj))
        return sections + audit_sections(self.admin_site, request, AuditQuery(worker_id=obj.pk), obj.read_at)

    def _facts(self, worker: Any) -> list[tuple[str, Any]]:
        return [
            ("Presence", self.presence(worker)),
            ("Running", self.running(worker)),
            ("Queues", self.queue_names(worker)),
            ("Queues paused here", ", ".join(worker.paused_queues) or NOTHING),
            ("Slots ordered", NOTHING if worker.ordered_concurrency is None else worker.ordered_concurrency),
            ("Process", f"{worker.hostname}, pid {worker.process_id}"),
            ("Version", worker.version),
            ("Clock skew", NOTHING if worker.clock_skew_seconds is None else _skew_words(worker.clock_skew_seconds)),
            ("Stop reason", worker.stop_reason or NOTHING),
        ]

    def _times(self, worker: Any) -> list[tuple[str, Any]]:
        return [
            ("Started", exact_moment(worker.started_at, worker.read_at)),
            ("Last heartbeat", exact_moment(worker.heartbeat_at, worker.read_at)),
            ("Heartbeat every", describe_seconds(worker.heartbeat_seconds)),
            ("Asked to drain", exact_moment(worker.drain_requested_at, worker.read_at)),
            ("Asked to stop", exact_moment(worker.stop_requested_at, worker.read_at)),
            ("Draining", exact_moment(worker.draining_at, worker.read_at)),
            ("Stopped", exact_moment(worker.stopped_at, worker.read_at)),
        ]

    def _running_jobs(self, worker: Worker) -> Section:
        # The state leads to the small index of running jobs; the worker's column has none.
        running = Job.objects.filter(state=JobState.RUNNING, worker_id=worker.pk).annotate(read_at=Clock())
        jobs = list(running.select_related("job_type", "queue").order_by("id")[:_SHOWN_JOBS])
        rows = [
            (
                link(self.admin_site, Job, job.pk, f"job {job.pk}"),
                job.job_type.name,
                job.queue.name,
                duration_between(job.leased_at, job.read_at),
                moment(job.lease_expires_at, job.read_at),
            )
            for job in jobs
        ]
        table = Table(("Job", "Job type", "Queue", "Claimed for", "Lease ends"), rows)
        return Section("Claimed jobs", table=table if rows else None, remark="" if rows else "None at this moment.")


def _skew_words(seconds: float) -> str:
    ahead = "ahead of" if seconds >= 0 else "behind"
    return f"{describe_seconds(abs(seconds))} {ahead} the database"
