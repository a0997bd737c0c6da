"""The screen of executions: the ended claims of all jobs."""

from typing import Any

from django.contrib import admin
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.safestring import SafeString

from django_pgbroker.admin.display import (
    NOTHING,
    badge,
    breakable,
    duration,
    duration_between,
    exact_moment,
    is_key,
    job_type,
    link,
    moment,
)
from django_pgbroker.admin.filters import JobTypeFilter, OutcomeFilter, QueueFilter
from django_pgbroker.admin.job_sections import shorten_error
from django_pgbroker.admin.keyset import KeysetChangeList
from django_pgbroker.admin.screen import ReadOnlyScreen, Rows
from django_pgbroker.admin.section import Section
from django_pgbroker.domain.states import Outcome
from django_pgbroker.models import Execution, Job, Queue, Worker


class ExecutionChangeList(KeysetChangeList):
    """Rows are addressed by job and token: the token alone has no index."""

    def url_for_result(self, result: Any) -> str:
        """The detail page of one execution."""
        return f"{result.job_id}-{result.lease_token}/change/"


@admin.register(Execution)
class ExecutionScreen(ReadOnlyScreen):
    """Ended claims, those of the latest jobs first."""

    key = ("job_id", "lease_token")
    search_column = "job_id"
    list_display = ("number", "attempt", "outcome_badge", job_type, "ran_for", "finished", "error")
    list_filter = (OutcomeFilter, QueueFilter, JobTypeFilter)
    list_defer = ("traceback", "error_message")
    note = "Every claim of a job that has ended, those of the latest jobs first."
    empty_note = "No execution has ended yet."

    def get_queryset(self, request: HttpRequest) -> Rows:
        """With names joined, and the start of the error for the list."""
        rows = super().get_queryset(request).select_related("queue", "job_type", "worker")
        with_start: Rows = rows.annotate(error_start=Left("error_message", 200))
        return with_start

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """Page by job and token."""
        return ExecutionChangeList

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """One execution by ``<job>-<token>``; ``None`` when there is none, or the address is no such pair."""
        job_id, _, token = object_id.partition("-")
        if not (is_key(job_id) and is_key(token)):
            return None
        return self.get_queryset(request).filter(job_id=int(job_id), lease_token=int(token)).first()

    @admin.display(description="job")
    def number(self, execution: Execution) -> int:
        """The job it is a claim of."""
        return execution.job_id

    @admin.display(description="outcome")
    def outcome_badge(self, execution: Execution) -> SafeString:
        """Its outcome as a word."""
        return badge(Outcome(execution.outcome).label)

    @admin.display(description="worker")
    def worker_link(self, execution: Execution) -> SafeString | str:
        """Who ran it."""
        worker = execution.worker
        return link(self.admin_site, Worker, worker.pk, worker.name) if worker else NOTHING

    @admin.display(description="ran for")
    def ran_for(self, execution: Execution) -> str:
        """The handler's time; that of the claim where the handler's is unknown."""
        if execution.run_microseconds is None:
            return duration_between(execution.leased_at, execution.finished_at)
        return duration(execution.run_microseconds)

    @admin.display(description="finished")
    def finished(self, execution: Any) -> SafeString | str:
        """How long ago it ended."""
        return moment(execution.finished_at, execution.read_at)

    @admin.display(description="error")
    def error(self, execution: Any) -> str:
        """The error or the reason, in one line."""
        return shorten_error(execution.error_class, execution.error_start) or execution.reason or NOTHING

    def sections(self, request: HttpRequest, obj: Any) -> list[Section]:
        """Where and when it ran; how it ended."""
        sections = [Section("Execution", self._facts(obj)), Section("Times", self._times(obj))]
        if obj.error_class or obj.reason:
            facts = [
                ("Error", breakable(obj.error_class or NOTHING)),
                ("Reason", obj.reason or NOTHING),
                ("Fingerprint", NOTHING if obj.fingerprint is None else obj.fingerprint),
            ]
            sections.append(Section("Why it ended", facts, text=obj.error_message))
        if obj.traceback:
            sections.append(Section("Traceback", text=obj.traceback))
        return sections

    def _facts(self, execution: Any) -> list[tuple[str, Any]]:
        return [
            ("Outcome", badge(Outcome(execution.outcome).label)),
            ("Job", link(self.admin_site, Job, execution.job_id, f"job {execution.job_id}")),
            ("Job type", job_type(execution)),
            ("Queue", link(self.admin_site, Queue, execution.queue_id, execution.queue.name)),
            ("Attempt", execution.attempt),
            ("Worker", self.worker_link(execution)),
            ("Fencing token", execution.lease_token),
        ]

    def _times(self, execution: Any) -> list[tuple[str, Any]]:
        return [
            ("Claimed", exact_moment(execution.leased_at, execution.read_at)),
            ("Finished", exact_moment(execution.finished_at, execution.read_at)),
            ("Handler ran for", duration(execution.run_microseconds)),
            ("Claim to acknowledge", duration_between(execution.leased_at, execution.finished_at)),
        ]
