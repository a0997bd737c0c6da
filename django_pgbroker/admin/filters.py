"""The filters beside the lists: by state or outcome, by queue, by job type. Their choices never count anything."""

from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from django_pgbroker.admin.display import is_key
from django_pgbroker.domain.states import FINISHED_STATES, LIVE_STATES, Outcome
from django_pgbroker.domain.verbs import VERBS
from django_pgbroker.models import AuditEntry, JobType, Queue

#: A longer list of names helps nobody; ids beyond it still work in a link.
_LONGEST_LIST = 300

#: Who acted is gathered from so many entries of the audit log.
_LATEST_ACTS = 1_000


class _IdFilter(SimpleListFilter):
    """Compares one small-integer or link column with the chosen number."""

    column: str

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
        """The rows with the chosen number; all rows when nothing is chosen."""
        chosen = self.value()
        if chosen is None:
            return queryset
        if not is_key(chosen):
            raise IncorrectLookupParameters(f"{chosen!r} is no {self.title}")
        return queryset.filter(**{self.column: int(chosen)})


class LiveStateFilter(_IdFilter):
    """By the state of a live job."""

    title = parameter_name = column = "state"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> list[tuple[str, str]]:
        """The states a live job can be in."""
        return [(str(state.value), state.label) for state in sorted(LIVE_STATES)]


class FinishedStateFilter(_IdFilter):
    """By the state that a job ended in."""

    title = parameter_name = column = "state"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> list[tuple[str, str]]:
        """The states a job can end in."""
        return [(str(state.value), state.label) for state in sorted(FINISHED_STATES)]


class OutcomeFilter(_IdFilter):
    """By the outcome of an execution."""

    title = parameter_name = column = "outcome"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> list[tuple[str, str]]:
        """The outcomes that leave an execution."""
        recorded = [outcome for outcome in Outcome if outcome is not Outcome.RELEASED]
        return [(str(outcome.value), outcome.label.replace("_", " ")) for outcome in recorded]


class _NameFilter(_IdFilter):
    """By a name that stands in a small table of its own."""

    names: type[Model]

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> list[tuple[str, str]]:
        """The names in alphabetical order."""
        rows = self.names._default_manager.order_by("name").values_list("pk", "name")[:_LONGEST_LIST]
        return [(str(pk), name) for pk, name in rows]


class QueueFilter(_NameFilter):
    """By queue."""

    title = parameter_name = "queue"
    column = "queue_id"
    names = Queue


class JobTypeFilter(_NameFilter):
    """By job type."""

    title = "job type"
    parameter_name = "job_type"
    column = "job_type_id"
    names = JobType


class StoppedFilter(SimpleListFilter):
    """Workers that run, or those that have stopped or died."""

    title = "presence"
    parameter_name = "stopped"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> list[tuple[str, str]]:
        """Two choices."""
        return [("0", "running"), ("1", "stopped or lost")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
        """The workers of the chosen kind."""
        return queryset if self.value() is None else queryset.filter(stopped_at__isnull=self.value() != "1")


class _WordFilter(SimpleListFilter):
    """Compares one column of text with the chosen word; any word works in a link."""

    column: str

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
        """The rows with the chosen word; all rows when nothing is chosen."""
        chosen = self.value()
        if chosen is None:
            return queryset
        if "\x00" in chosen:
            raise IncorrectLookupParameters(f"no {self.title} has a NUL in its name")
        return queryset.filter(**{self.column: chosen})


class ActFilter(_WordFilter):
    """By verb."""

    title = "act"
    parameter_name = column = "action"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> list[tuple[str, str]]:
        """The verbs there are."""
        return [(verb.name, verb.name) for verb in VERBS]


class ActorFilter(_WordFilter):
    """By who did it."""

    title = "actor"
    parameter_name = column = "actor"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> list[tuple[str, str]]:
        """Who did one of the latest acts: to find all actors would read the whole log."""
        latest = AuditEntry.objects.order_by("-pk").values_list("actor", flat=True)[:_LATEST_ACTS]
        return [(actor, actor) for actor in sorted(set(latest))]


class SourceFilter(_WordFilter):
    """By where the wish came from."""

    title = "source"
    parameter_name = column = "source"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> list[tuple[str, str]]:
        """The sources there are."""
        return [(source, source) for source in ("ui", "command", "code", "duty")]
