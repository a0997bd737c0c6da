"""The screen of queues: sampled depth, oldest wait, who paused what."""

from typing import Any

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from django_pgbroker.admin import queue_acts
from django_pgbroker.admin.act import Act
from django_pgbroker.admin.acting import ActingScreen
from django_pgbroker.admin.audit_sections import audit_sections
from django_pgbroker.admin.display import NOTHING, badge, duration_between, exact_moment, list_link, moment
from django_pgbroker.admin.keyset import KeysetChangeList
from django_pgbroker.admin.offers import offers
from django_pgbroker.admin.section import Section
from django_pgbroker.domain.durations import describe_age
from django_pgbroker.domain.states import LIVE_STATES, JobState
from django_pgbroker.domain.verbs import PURGE_QUEUE
from django_pgbroker.models import Job, Queue
from django_pgbroker.operations.audit_log import AuditQuery
from django_pgbroker.operations.overview import STALE_AFTER_SECONDS, describe_count


class QueueChangeList(KeysetChangeList):
    """All queues on one page, the longest wait first."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any, Any]) -> list[Any]:
        """Waiting queues first, by their oldest job; then by name."""
        return [F("oldest_pending_at").asc(nulls_last=True), "name"]

    def get_results(self, request: HttpRequest) -> None:
        """Read them all: queues are declared by people, so they are few."""
        self.queryset = self.queryset.order_by(*self.get_ordering(request, self.queryset))
        super().get_results(request)
        self.older_query = self.newer_query = self.newest_query = None


@admin.register(Queue)
@offers(*queue_acts.ALL)
class QueueScreen(ActingScreen):
    """Queues with their sampled figures."""

    list_display = (
        "name", "status", "oldest_wait", "pending", "running", "scheduled", "parked", "blocked", "sampled", "paused",
    )  # fmt: skip
    list_per_page = 1_000
    search_fields = ()
    note = "The longest wait first. A duty of the workers samples the figures every few seconds."
    empty_note = "No queue yet: the first one appears with the first job, or is declared in settings.PGBROKER."

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """All on one page."""
        return QueueChangeList

    def target_of(self, row: Queue) -> str:
        """Operations call a queue by its name."""
        return row.name

    def remark_on(self, act: Act, row: Any) -> str:
        """How many a purge would take, as far as that was sampled."""
        if act.verb is not PURGE_QUEUE:
            return ""
        if row.sampled_at is None:
            return "How many are pending is not known: no duty has sampled the figures of this queue yet."
        age = describe_age((row.read_at - row.sampled_at).total_seconds())
        return f"Pending when last sampled, {age}: {describe_count(row.pending_count)}."

    def place_of(self, row: Queue) -> dict[str, str]:
        """Itself."""
        return {"queue": row.name}

    def heading_of(self, obj: Queue) -> str:
        """Its name."""
        return f"Queue {obj.name}"

    @admin.display(description="status")
    def status(self, queue: Queue) -> SafeString:
        """Whether claims take from it."""
        return badge("paused" if queue.is_paused else "active")

    @admin.display(description="oldest wait")
    def oldest_wait(self, queue: Any) -> str:
        """How long its oldest pending job has been due."""
        return duration_between(queue.oldest_pending_at, queue.read_at)

    @admin.display(description="pending")
    def pending(self, queue: Queue) -> str:
        """Sampled."""
        return describe_count(queue.pending_count)

    @admin.display(description="running")
    def running(self, queue: Queue) -> str:
        """Sampled."""
        return describe_count(queue.running_count)

    @admin.display(description="scheduled")
    def scheduled(self, queue: Queue) -> str:
        """Sampled."""
        return describe_count(queue.scheduled_count)

    @admin.display(description="parked")
    def parked(self, queue: Queue) -> str:
        """Sampled."""
        return describe_count(queue.parked_count)

    @admin.display(description="blocked")
    def blocked(self, queue: Queue) -> str:
        """Sampled."""
        return describe_count(queue.blocked_count)

    @admin.display(description="sampled")
    def sampled(self, queue: Any) -> SafeString | str:
        """How old the figures are, with a warning when no duty seems to write them."""
        if queue.sampled_at is None:
            return format_html('<span class="pgb-warning">{}</span>', "never")
        words = moment(queue.sampled_at, queue.read_at)
        is_stale = (queue.read_at - queue.sampled_at).total_seconds() > STALE_AFTER_SECONDS
        return format_html('<span class="pgb-warning">{}</span>', words) if is_stale else words

    @admin.display(description="paused")
    def paused(self, queue: Any) -> SafeString | str:
        """Since when, by whom and why."""
        if queue.paused_at is None:
            return NOTHING
        by = f" by {queue.paused_by}" if queue.paused_by else ""
        why = f": {queue.pause_reason}" if queue.pause_reason else ""
        return format_html("{}{}{}", moment(queue.paused_at, queue.read_at), by, why)

    def sections(self, request: HttpRequest, obj: Any) -> list[Section]:
        """Status, figures, and the way to its jobs."""
        counts = {
            JobState.PENDING: obj.pending_count,
            JobState.RUNNING: obj.running_count,
            JobState.SCHEDULED: obj.scheduled_count,
            JobState.PARKED: obj.parked_count,
            JobState.BLOCKED: obj.blocked_count,
        }
        status = [
            ("Status", self.status(obj)),
            ("Oldest wait", self.oldest_wait(obj)),
            ("Figures sampled", self.sampled(obj)),
            ("Ageing", f"one priority step per {obj.ageing_seconds} s of waiting"),
            ("Created", exact_moment(obj.created_at, obj.read_at)),
        ]
        sections = [Section("Queue", status)]
        if obj.is_paused:
            paused = [
                ("Since", exact_moment(obj.paused_at, obj.read_at)),
                ("By", obj.paused_by or NOTHING),
                ("Reason", obj.pause_reason or NOTHING),
                ("Resumes by itself", exact_moment(obj.resume_at, obj.read_at)),
            ]
            sections.append(Section("Paused", paused))
        depth = [
            (
                state.label.capitalize(),
                list_link(self.admin_site, Job, describe_count(counts[state]), state=state.value, queue=obj.pk),
            )
            for state in sorted(LIVE_STATES)
        ]
        acts = audit_sections(self.admin_site, request, AuditQuery(queue=obj.name), obj.read_at)
        return [*sections, Section("Jobs", depth), *acts]
