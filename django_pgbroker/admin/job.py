"""The screen of live jobs."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString

from django_pgbroker.admin import job_acts
from django_pgbroker.admin.acting import ActingScreen
from django_pgbroker.admin.argument_pages import with_argument_pages, with_enqueue
from django_pgbroker.admin.audit_sections import audit_sections
from django_pgbroker.admin.display import NOTHING, badge, duration_between, exact_moment, is_key, job_type, link, moment
from django_pgbroker.admin.filters import JobTypeFilter, LiveStateFilter, QueueFilter
from django_pgbroker.admin.job_sections import describe_job, execution_sections, origin_facts, payload_sections
from django_pgbroker.admin.keyset import KeysetChangeList
from django_pgbroker.admin.offers import offers
from django_pgbroker.admin.progress import memory_sections, progress_cell, progress_section
from django_pgbroker.admin.screen import Rows
from django_pgbroker.admin.section import Section
from django_pgbroker.domain.states import LIVE_STATES, JobState, ParkedReason
from django_pgbroker.models import ArchivedJob, Job, JobProgress, Queue, Worker
from django_pgbroker.operations.audit_log import AuditQuery


class JobChangeList(KeysetChangeList):
    """The column of progress is there when a job on the page tells some."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page, then choose the columns."""
        super().get_results(request)
        if not any(_progress_of(job) for job in self.result_list):
            self.list_display = [name for name in self.list_display if name != "progress_bar"]


@admin.register(Job)
@with_enqueue
@with_argument_pages
@offers(*job_acts.ON_LIVE)
class JobScreen(ActingScreen):
    """Jobs that wait or run, the latest first."""

    states = LIVE_STATES

    list_display = ("number", "state_badge", job_type, "queue", "attempts", "due", "progress_bar", "worker_link")
    list_filter = (LiveStateFilter, QueueFilter, JobTypeFilter)
    note = "Jobs that wait or run, the latest first. Finished ones are in the archive."
    empty_note = "No job waits or runs."

    def get_queryset(self, request: HttpRequest) -> Rows:
        """With names, worker and progress joined."""
        return super().get_queryset(request).select_related("queue", "job_type", "tenant", "worker", "progress")

    def phrase_of(self, row: Any) -> str:
        """With its job type and queue."""
        return describe_job(row)

    def short_phrase_of(self, row: Any) -> str:
        """Its number."""
        return f"job {row.pk}"

    def place_of(self, row: Any) -> dict[str, str]:
        """Its queue and tenant."""
        return {"queue": row.queue.name, "tenant": row.tenant.name}

    def index_serves(self, chosen: Mapping[str, str]) -> bool:
        """Every state has a partial index, and those of the waiting states lead with the queue."""
        return "state" in chosen and set(chosen) <= {"state", "queue"}

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """Without a column that would be empty."""
        return JobChangeList

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The job's page; a job that has finished meanwhile leads to its page in the archive."""
        job_id = unquote(object_id)
        if self.has_view_permission(request) and is_key(job_id) and self._has_moved(job_id):
            name = f"admin:{ArchivedJob._meta.app_label}_{ArchivedJob._meta.model_name}_change"
            return HttpResponseRedirect(reverse(name, args=(job_id,), current_app=self.admin_site.name))
        return super().change_view(request, object_id, form_url, extra_context)

    def _has_moved(self, job_id: str) -> bool:
        return (
            not Job.objects.filter(pk=job_id).exists()
            and ArchivedJob.objects.filter(pk=job_id).exists()
            and self.admin_site.is_registered(ArchivedJob)
        )

    @admin.display(description="job")
    def number(self, job: Job) -> int:
        """Its id."""
        return job.pk

    @admin.display(description="state")
    def state_badge(self, job: Job) -> SafeString:
        """Its state as a word."""
        return badge(JobState(job.state).label)

    @admin.display(description="attempts")
    def attempts(self, job: Job) -> str:
        """How many it has used of those it has."""
        return f"{job.attempt}/{job.max_attempts}"

    @admin.display(description="due")
    def due(self, job: Any) -> SafeString | str:
        """When it may start, or since when."""
        return moment(job.available_at, job.read_at)

    @admin.display(description="progress")
    def progress_bar(self, job: Job) -> SafeString | str:
        """How far it is, if its handler tells that."""
        found = _progress_of(job)
        return progress_cell(found.told) if found else NOTHING

    @admin.display(description="worker")
    def worker_link(self, job: Job) -> SafeString | str:
        """Who runs it."""
        return link(self.admin_site, Worker, job.worker.pk, job.worker.name) if job.worker else NOTHING

    def sections(self, request: HttpRequest, obj: Any) -> list[Section]:
        """State, progress, times and lease; what it carries; what happened to it."""
        payload = _payload_of(obj)
        sections = [Section("Job", self._facts(obj, payload))]
        if progress := _progress_of(obj):
            sections.append(progress_section(progress.told, progress.updated_at, obj.read_at))
        if obj.is_tracked:
            sections += memory_sections(obj.pk)
        sections.append(Section("Times", _times(obj)))
        if obj.lease_token is not None:
            sections.append(Section("Lease", self._lease(obj)))
        sections += execution_sections(self.admin_site, request, obj.pk)
        sections += audit_sections(self.admin_site, request, AuditQuery(job_id=obj.pk), obj.read_at)
        return sections + (payload_sections(payload) if payload else [])

    def _facts(self, job: Any, payload: Any) -> list[tuple[str, Any]]:
        facts = [
            ("State", badge(JobState(job.state).label)),
            ("Job type", job_type(job)),
            ("Queue", link(self.admin_site, Queue, job.queue_id, job.queue.name)),
            ("Priority", job.priority),
            ("Attempts", self.attempts(job)),
            ("Worker deaths", job.deaths),
            ("Interruptions", job.interruptions),
            ("Time-out", f"{job.timeout_seconds} s" if job.timeout_seconds else NOTHING),
            *origin_facts(job, payload),
        ]
        if job.parked_reason is not None:
            facts.insert(1, ("Parked for", _parked_words(job.parked_reason)))
        if job.cancel_requested_at is not None:
            facts[1:1] = [
                ("Cancel requested", exact_moment(job.cancel_requested_at, job.read_at)),
                ("Cancel requested by", f"{job.cancel_requested_by}: {job.cancel_reason or 'no reason given'}"),
            ]
        if job.unmet:
            facts.insert(1, ("Waits for", f"{job.unmet} unfinished dependencies"))
        return facts

    def _lease(self, job: Any) -> list[tuple[str, Any]]:
        return [
            ("Worker", self.worker_link(job)),
            ("Fencing token", job.lease_token),
            ("Claimed", exact_moment(job.leased_at, job.read_at)),
            ("Lease ends", exact_moment(job.lease_expires_at, job.read_at)),
            ("Claimed for", duration_between(job.leased_at, job.read_at)),
        ]


def _times(job: Any) -> list[tuple[str, Any]]:
    return [
        ("Created", exact_moment(job.created_at, job.read_at)),
        ("Due", exact_moment(job.available_at, job.read_at)),
        ("Latest start", exact_moment(job.expires_at, job.read_at)),
        ("Latest finish", exact_moment(job.deadline_at, job.read_at)),
    ]


def _payload_of(job: Any) -> Any:
    try:
        return job.payload
    except ObjectDoesNotExist:
        return None


def _progress_of(job: Any) -> JobProgress | None:
    try:
        found: JobProgress = job.progress
    except ObjectDoesNotExist:
        return None
    return found


def _parked_words(reason: int) -> str:
    try:
        return ParkedReason(reason).label
    except ValueError:
        return f"reason {reason}"
