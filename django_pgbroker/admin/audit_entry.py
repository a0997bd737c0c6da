"""The screen of the audit log: what operators did, from wherever. Nobody changes anything here."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.safestring import SafeString

from django_pgbroker.admin.display import NOTHING, exact_moment, is_key, moment, pretty_json
from django_pgbroker.admin.filters import ActFilter, ActorFilter, SourceFilter
from django_pgbroker.admin.screen import ReadOnlyScreen, Rows
from django_pgbroker.admin.section import Section
from django_pgbroker.models import AuditEntry
from django_pgbroker.operations.audit_log import AuditQuery, read_audit

#: A search by a job finds the newest acts on it, up to so many.
_FOUND_ACTS = 1_000

#: So many of the jobs of an entry are named on the list.
_NAMED_JOBS = 3


@admin.register(AuditEntry)
class AuditEntryScreen(ReadOnlyScreen):
    """Acts, the latest first."""

    list_display = ("action", "done_to", "count", "actor", "occurred", "reason", "source")
    list_filter = (ActFilter, ActorFilter, SourceFilter)
    list_defer = ("before", "after")
    note = "What operators did, from the admin, from commands and from code, the latest first."
    empty_note = "Nobody has done anything yet."
    search_help_text = "Search takes the number of one job."

    def get_queryset(self, request: HttpRequest) -> Rows:
        """With the tenant joined."""
        return super().get_queryset(request).select_related("tenant")

    def get_search_results(self, request: HttpRequest, queryset: Rows, search_term: str) -> tuple[Rows, bool]:
        """The acts on the job with this number, by the index of targets."""
        term = search_term.strip().removeprefix("#")
        if not term:
            return queryset, False
        if not is_key(term):
            self.message_user(request, str(self.search_help_text), messages.WARNING)
            return queryset.none(), False
        page = read_audit(AuditQuery(job_id=int(term)), limit=_FOUND_ACTS)
        return queryset.filter(pk__in=[entry.pk for entry in page.rows]), False

    @admin.display(description="to")
    def done_to(self, entry: AuditEntry) -> str:
        """What it was done to, in words."""
        return describe_target(entry.target)

    @admin.display(description="when")
    def occurred(self, entry: Any) -> SafeString | str:
        """How long ago."""
        return moment(entry.occurred_at, entry.read_at)

    def sections(self, request: HttpRequest, obj: Any) -> list[Section]:
        """Who, what, why; the target, and what it was before and after, as they are stored."""
        facts = [
            ("Act", obj.action),
            ("To", describe_target(obj.target)),
            ("How many", obj.count),
            ("Who", obj.actor),
            ("From", obj.source),
            ("When", exact_moment(obj.occurred_at, obj.read_at)),
            ("Tenant", obj.tenant.name if obj.tenant else NOTHING),
            ("Reason", obj.reason or NOTHING),
        ]
        stored = (("Target", obj.target), ("Before", obj.before), ("After", obj.after))
        texts = [Section(title, text=pretty_json(value)) for title, value in stored if value is not None]
        return [Section("Act", facts), *texts]


def describe_target(target: Any) -> str:
    """The target of an entry in words: ``job 7``, ``queue mail``, ``jobs 1, 2, 3 …``."""
    if not isinstance(target, dict):
        return NOTHING
    if queue := target.get("queue"):
        return f"queue {queue}"
    if "worker" in target:
        return f"worker {target.get('name') or target['worker']}"
    jobs = target.get("jobs") or []
    if not jobs:
        return "what a filter found" if "filter" in target else NOTHING
    named = ", ".join(str(job) for job in jobs[:_NAMED_JOBS])
    return f"job{'' if len(jobs) == 1 else 's'} {named}{' …' if len(jobs) > _NAMED_JOBS else ''}"
