"""Read one page of the jobs that match a filter, live or finished. For ``pgbroker_jobs list``."""

from dataclasses import replace
from typing import Any

from django.db.models import Model, QuerySet
from django.db.models.functions import Left

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import InvalidOption, PgbrokerError, UnknownJobType, UnknownQueue
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.names import suggest
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, DeadLetter, Job, JobType, Queue, Tenant
from django_pgbroker.models.clock import Clock
from django_pgbroker.operations.pages import Page, read_page

#: Characters of an error's message that a list reads.
_ERROR_START = 200

_ERROR_FILTERS = ("error", "error_class", "finished_after", "finished_before")

#: How a link is filtered by name, and what is said of a name that does not exist.
_NAMES: tuple[tuple[str, type[Model], type[PgbrokerError], str], ...] = (
    ("queue", Queue, UnknownQueue, "queue"),
    ("job_type", JobType, UnknownJobType, "job type"),
    ("tenant", Tenant, InvalidOption, "tenant"),
)


def list_jobs(
    chosen: JobFilter,
    *,
    is_finished: bool = False,
    before: int | None = None,
    limit: int = 100,
    using: str | None = None,
) -> Page:
    """One page of jobs, the latest enqueued first.

    Args:
        chosen: which jobs.
        is_finished: list finished jobs where the filter names no state; else live ones.
        before: only jobs with a lower id, as ``next_before`` of the page before.
        limit: jobs on a page.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Returns:
        ``Job`` or ``ArchivedJob`` rows with their names, without payloads; an archived one has the start of its error
        as ``error_start``. A page looks at a bounded number of rows, so it may be short although the list goes on.

    Raises:
        InvalidOption: live and finished states together, or a condition that only finished jobs can meet.
        UnknownQueue, UnknownJobType: no such name in this database.
        django.db.DatabaseError: as the server answered.
    """
    database = using or get_settings().database
    states = chosen.chosen_states
    finished = {state for state in states if state.is_finished}
    if finished and finished != states:
        raise InvalidOption("live and finished jobs are two lists: ask for one of them at a time")
    if not (finished or (is_finished and not states)):
        return _list_live(chosen, database, before, limit)
    everything: QuerySet[Any, Any]
    if finished == {JobState.DEAD}:
        everything = DeadLetter.objects.using(database)
    else:
        everything = ArchivedJob.objects.using(database)
    wanted = everything.select_related("queue", "job_type", "tenant")
    wanted = wanted.annotate(read_at=Clock(), error_start=Left("error_message", _ERROR_START))
    wanted = wanted.defer("arguments", "headers", "result", "error_message", "progress")
    if finished and finished != {JobState.DEAD}:
        wanted = wanted.filter(state__in=finished)
    is_served = finished <= {JobState.DEAD} and not _is_narrow(chosen)
    narrowed = _narrow(wanted, chosen, database)
    return read_page(everything, narrowed, before=before, limit=limit, is_served=is_served)


def _list_live(chosen: JobFilter, database: str, before: int | None, limit: int) -> Page:
    for name in _ERROR_FILTERS:
        if getattr(chosen, name) is not None:
            raise InvalidOption(f"{name} is known of finished jobs only: choose their states, such as dead")
    everything = Job.objects.using(database)
    wanted = everything.with_names().select_related("worker").annotate(read_at=Clock())
    states = chosen.chosen_states
    if states:
        wanted = wanted.filter(state__in=states) if len(states) > 1 else wanted.filter(state=min(states))
    # the running are few, and have an index of their own
    is_served = states == {JobState.RUNNING} or not (states or _is_narrow(chosen))
    return read_page(everything, _narrow(wanted, chosen, database), before=before, limit=limit, is_served=is_served)


def _is_narrow(chosen: JobFilter) -> bool:
    return replace(chosen, states=()) != JobFilter()


def _narrow(wanted: QuerySet[Any, Any], chosen: JobFilter, database: str) -> QuerySet[Any, Any]:
    for attribute, model, error, words in _NAMES:
        name = getattr(chosen, attribute)
        if name is not None:
            wanted = wanted.filter(**{f"{attribute}_id": _find_name(model, name, error, words, database)})
    given = {
        "created_at__gte": chosen.created_after,
        "created_at__lt": chosen.created_before,
        "finished_at__gte": chosen.finished_after,
        "finished_at__lt": chosen.finished_before,
        "error_class": chosen.error_class,
        "error_message__icontains": chosen.error,
    }
    return wanted.filter(**{name: value for name, value in given.items() if value is not None})


def _find_name(model: type[Model], name: str, error: type[PgbrokerError], words: str, database: str) -> int:
    names = model._default_manager.using(database)
    found: int | None = names.filter(name=name).values_list("pk", flat=True).first()
    if found is None:
        raise error(f"there is no {words} {name!r}. {suggest(name, names.values_list('name', flat=True))}".rstrip())
    return found
