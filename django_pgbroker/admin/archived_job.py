"""The screen of finished jobs."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin import SimpleListFilter
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.safestring import SafeString

from django_pgbroker.admin import job_acts
from django_pgbroker.admin.acting import ActingScreen
from django_pgbroker.admin.argument_pages import with_argument_pages
from django_pgbroker.admin.audit_sections import audit_sections
from django_pgbroker.admin.display import (
    NOTHING,
    badge,
    breakable,
    duration_between,
    exact_moment,
    job_type,
    link,
    moment,
    pretty_json,
)
from django_pgbroker.admin.filters import FinishedStateFilter, JobTypeFilter, QueueFilter
from django_pgbroker.admin.job_sections import (
    describe_job,
    execution_sections,
    origin_facts,
    payload_sections,
    shorten_error,
)
from django_pgbroker.admin.offers import offers
from django_pgbroker.admin.progress import memory_sections, progress_section, read_archived
from django_pgbroker.admin.screen import Rows
from django_pgbroker.admin.section import Section
from django_pgbroker.domain.states import FINISHED_STATES, JobState
from django_pgbroker.models import ArchivedJob, Queue
from django_pgbroker.operations.audit_log import AuditQuery


@admin.register(ArchivedJob)
@with_argument_pages
@offers(*job_acts.ON_FINISHED)
class ArchivedJobScreen(ActingScreen):
    """Finished jobs, the latest enqueued first."""

    states = FINISHED_STATES

    list_display = ["number", "state_badge", job_type, "queue", "attempts", "finished", "ending"]
    list_filter: ClassVar[tuple[type[SimpleListFilter], ...]] = (FinishedStateFilter, QueueFilter, JobTypeFilter)
    list_defer = ("arguments", "headers", "result", "error_message", "progress")
    note = "Jobs that have ended, the latest enqueued first."
    empty_note = "No job has finished yet."

    def get_queryset(self, request: HttpRequest) -> Rows:
        """With names joined, and the start of the error for the list."""
        rows = super().get_queryset(request).select_related("queue", "job_type", "tenant")
        with_start: Rows = rows.annotate(error_start=Left("error_message", 200))
        return with_start

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
        """Dead letters have a partition of their own; the other states and the names have no index."""
        return chosen == {"state": str(JobState.DEAD.value)}

    @admin.display(description="job")
    def number(self, job: ArchivedJob) -> int:
        """Its id."""
        return job.pk

    @admin.display(description="state")
    def state_badge(self, job: ArchivedJob) -> SafeString:
        """The state it ended in, as a word."""
        return badge(JobState(job.state).label)

    @admin.display(description="attempts")
    def attempts(self, job: ArchivedJob) -> str:
        """How many it used of those it had."""
        return f"{job.attempt}/{job.max_attempts}"

    @admin.display(description="finished")
    def finished(self, job: Any) -> SafeString | str:
        """How long ago it ended."""
        return moment(job.finished_at, job.read_at)

    @admin.display(description="why")
    def ending(self, job: Any) -> str:
        """The error or the reason, in one line."""
        return shorten_error(job.error_class, job.error_start) or job.reason or NOTHING

    def sections(self, request: HttpRequest, obj: Any) -> list[Section]:
        """State, progress and times; how it ended; what happened to it; what it carried."""
        sections = [Section("Job", self._facts(obj))]
        if obj.error_class or obj.reason:
            facts = [("Error", breakable(obj.error_class or NOTHING)), ("Reason", obj.reason or NOTHING)]
            sections.append(Section("Why it ended", facts, text=obj.error_message))
        if obj.progress is not None:
            sections.append(progress_section(read_archived(obj.progress), None, obj.read_at))
        if obj.state == JobState.DEAD:
            sections += memory_sections(obj.pk)
        sections.append(Section("Times", _times(obj)))
        sections += execution_sections(self.admin_site, request, obj.pk)
        sections += audit_sections(self.admin_site, request, AuditQuery(job_id=obj.pk), obj.read_at)
        if obj.result is not None:
            sections.append(Section("Result", text=pretty_json(obj.result)))
        return sections + payload_sections(obj)

    def _facts(self, job: Any) -> list[tuple[str, Any]]:
        return [
            ("State", badge(JobState(job.state).label)),
            ("Job type", job_type(job)),
            ("Queue", link(self.admin_site, Queue, job.queue_id, job.queue.name)),
            ("Priority", job.priority),
            ("Attempts", self.attempts(job)),
            ("Worker deaths", job.deaths),
            ("Interruptions", job.interruptions),
            *origin_facts(job, job),
        ]


def _times(job: Any) -> list[tuple[str, Any]]:
    return [
        ("Created", exact_moment(job.created_at, job.read_at)),
        ("Last due", exact_moment(job.available_at, job.read_at)),
        ("Finished", exact_moment(job.finished_at, job.read_at)),
        ("Created to finished", duration_between(job.created_at, job.finished_at)),
    ]
