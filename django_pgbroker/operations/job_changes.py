"""Whom a verb is for and who asks: read the selection, then change by id, by filter, or leave it to a job."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NotRequired, Required, TypedDict

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import InvalidOption, UnknownJobType, UnknownQueue
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.names import suggest
from django_pgbroker.domain.states import FINISHED_STATES, LIVE_STATES, JobState
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verbs import RETRY_JOB, Verb
from django_pgbroker.operations.actors import Acting, read_actor
from django_pgbroker.operations.bulk_changes import BulkChange, Pace
from django_pgbroker.operations.bulk_job import describe_obstacle, leave_to_job
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.operations.job_batch import JobChange
from django_pgbroker.operations.named_changes import change_named, read_ids, wrapping_errors
from django_pgbroker.operations.permissions import require
from django_pgbroker.store import held_jobs
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.names import find_missing_names, find_queue_names

#: One job by its id, several, or all that match.
type Selection = int | Iterable[int] | JobFilter

#: A filter that matches more is carried out by a job of the broker itself.
MOST_AT_ONCE = 2_000

#: The question how many match looks at so many rows.
MOST_COUNTED_ROWS = 200_000


class Asking(TypedDict, total=False):
    """Who asks for a verb, and how.

    Args:
        actor: a user of Django, whose permissions are checked, or a name for the audit, which is trusted.
        reason: why, up to 200 characters.
        source: ``code``, ``command``, ``ui`` or ``duty``.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.
        in_background: True leaves a filter to a job of the broker, False never does; by default large ones are.
    """

    actor: Required[Acting]
    reason: NotRequired[str | None]
    source: NotRequired[str]
    using: NotRequired[str | None]
    in_background: NotRequired[bool | None]


@dataclass(frozen=True)
class Matches:
    """How many jobs a verb would take.

    Args:
        count: among the rows looked at, and at most one more than was asked for.
        is_exact: whether there are no more.
    """

    count: int
    is_exact: bool


def change_jobs(
    verb: Verb,
    selection: Selection,
    options: Mapping[str, Any],
    *,
    actor: Acting | None = None,
    reason: str | None = None,
    source: str = "code",
    using: str | None = None,
    in_background: bool | None = None,
) -> VerbReport:
    """Carry out a verb; see ``cancel_jobs`` for arguments, answer and errors."""
    if actor is None:
        raise InvalidOption(f"{verb.name} needs actor=, a user of Django or a name for the audit")
    asked = read_actor(actor, source, reason)
    require(asked, verb)
    gateway = open_caller_gateway(using or get_settings().database)
    chosen = selection if isinstance(selection, JobFilter) else read_ids(selection)
    with wrapping_errors(verb):
        _check_names(gateway, chosen, options.get("queue"))
        if options.get("queue"):
            require(asked, verb, queue=options["queue"])
        change = JobChange(verb, _settle_times(gateway, options), asked, gateway)
        if isinstance(chosen, JobFilter):
            return _change_matching(change, chosen, in_background)
        if in_background:
            raise InvalidOption("in_background is for a filter; jobs that are named by id are changed at once")
        return change_named(change, chosen)


def count_matching(
    verb: Verb,
    chosen: JobFilter,
    *,
    most: int = MOST_AT_ONCE,
    rows: int = MOST_COUNTED_ROWS,
    using: str | None = None,
) -> Matches:
    """How many jobs a verb would take with this filter, in bounded time whatever the size of the tables.

    Args:
        verb: on jobs.
        chosen: the filter.
        most: counting ends there.
        rows: of the table, so many are looked at.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Raises:
        InvalidOption: the filter is for jobs that the verb cannot take.
        BrokerDatabaseError: the database did not answer.
    """
    gateway = open_caller_gateway(using or get_settings().database)
    with wrapping_errors(verb):
        return _count(gateway, _narrow(verb, chosen), read_states(verb, chosen), most, rows)


def read_states(verb: Verb, chosen: JobFilter) -> frozenset[JobState]:
    """The states that a filter means for a verb: all of them live, or all of them finished.

    Raises:
        InvalidOption: the verb cannot take jobs from one of them, or they are of both kinds.
    """
    states = chosen.chosen_states or verb.matched_states
    if not verb.filter_states:
        raise InvalidOption(f"{verb.name} is for one job, by its id")
    if not chosen.as_json():
        words = ", ".join(repr(state.label) for state in sorted(states))
        raise InvalidOption(f"an empty filter would mean every job; if that is meant, say states=({words},)")
    for state in sorted(states - verb.filter_states):
        possible = ", ".join(sorted(each.label for each in verb.filter_states))
        raise InvalidOption(f"{verb.name} by a filter cannot take jobs that are {state.label}, only {possible} ones")
    if states & LIVE_STATES and states & FINISHED_STATES:
        raise InvalidOption("one filter is for jobs that wait or run, or for finished ones: name states of one kind")
    if states <= LIVE_STATES and chosen.is_about_the_end:
        raise InvalidOption("error, error_class and finished_… are for finished jobs, and these states are not")
    return states


def _change_matching(change: JobChange, chosen: JobFilter, in_background: bool | None) -> VerbReport:
    change.states = read_states(change.verb, chosen)
    chosen = _narrow(change.verb, chosen)
    change.origin = {"filter": chosen.as_json()}
    pace = Pace(change.options.get("per_second"))
    if in_background is None:
        in_background = pace.per_second is not None or not _is_small(change, chosen)
    cutoff = held_jobs.find_cutoff(change.gateway)
    if in_background:
        job_id, remark = leave_to_job(change, chosen, cutoff), describe_obstacle(change.gateway)
        return VerbReport(change.verb.name, background_job_id=job_id, obstacle=remark)
    return BulkChange(change, chosen, cutoff, pace).run()


def _narrow(verb: Verb, chosen: JobFilter) -> JobFilter:
    """To try again is for jobs that were tried."""
    return replace(chosen, tried=True) if verb is RETRY_JOB else chosen


def _is_small(change: JobChange, chosen: JobFilter) -> bool:
    return _count(change.gateway, chosen, change.states, MOST_AT_ONCE, MOST_COUNTED_ROWS).is_exact


def _count(gateway: CallerGateway, chosen: JobFilter, states: frozenset[JobState], most: int, rows: int) -> Matches:
    found, is_complete = held_jobs.count_matching(gateway, chosen, states, most=most, rows=rows)
    return Matches(found, is_complete and found <= most)


def _check_names(gateway: CallerGateway, chosen: JobFilter | list[int], target: str | None) -> None:
    """A name without a row is a typing error: no job can match it, or move there."""
    queues = {target, chosen.queue if isinstance(chosen, JobFilter) else None} - {None}
    known = find_queue_names(gateway) if queues else []
    for queue in sorted(filter(None, queues)):
        if queue not in known:
            raise UnknownQueue(f"there is no queue {queue!r}. {suggest(queue, known)}".rstrip())
    if isinstance(chosen, JobFilter) and (chosen.job_type or chosen.tenant):
        _, no_type, no_tenant = find_missing_names(gateway, "", chosen.job_type or "", chosen.tenant or "")
        if chosen.job_type and no_type:
            raise UnknownJobType(f"no job of a type {chosen.job_type!r} was ever enqueued in this database")
        if chosen.tenant and no_tenant:
            raise InvalidOption(f"there is no tenant {chosen.tenant!r} in this database")


def _settle_times(gateway: CallerGateway, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """A delay becomes a time, so that a verb that is gone on with later means the same."""
    if not {"delay_seconds", "run_at"} & options.keys():
        return options
    now = held_jobs.find_cutoff(gateway).at
    if "delay_seconds" in options:
        return {"run_at": (now + timedelta(seconds=options["delay_seconds"])).isoformat()}
    if datetime.fromisoformat(options["run_at"]) <= now:
        raise InvalidOption(f"run_at {options['run_at']} has passed; to make jobs due use run_jobs_now")
    return options
