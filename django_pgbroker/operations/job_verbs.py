"""What operators do to jobs, to one, to many by id, or to all that match a filter. For code, commands and the admin."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Unpack

from django_pgbroker.conf import get_settings
from django_pgbroker.domain import verbs
from django_pgbroker.domain.errors import (
    InvalidOption,
    InvalidPayload,
    show_value,
)
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.names import check_queue_name
from django_pgbroker.domain.options import Duration, read_duration, read_time
from django_pgbroker.domain.priorities import resolve_priority
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.operations.handles import JobHandle
from django_pgbroker.operations.job_changes import Asking, Selection, change_jobs
from django_pgbroker.operations.named_changes import raise_refusal, read_job_id

#: A pace beyond this is no pace.
_FASTEST_PER_SECOND = 100_000.0


def cancel_jobs(selection: Selection, **asking: Unpack[Asking]) -> VerbReport:
    """Cancel jobs: those that wait end at once, those that run are asked to (see ``cancel_job``).

    Args:
        selection: the id of a job, ids, or a ``JobFilter``.
        asking: who asks, and how; as in ``Asking``.

    Returns:
        How many were changed, and which of the ids were not and why. Where a filter matches more than ``MOST_AT_ONCE``
        jobs, and ``in_background=False`` was not given, the id of the broker's own job that does it.

    Raises:
        NotPermitted: the user may not do this at all; single jobs of queues or tenants that are not theirs are refused
            in the report.
        InvalidOption, InvalidName: a selection, actor, reason or option that is impossible.
        BrokerDatabaseError: the database refused; nothing has changed in the caller's transaction.
    """
    return change_jobs(verbs.CANCEL_JOB, selection, {}, **asking)


def run_jobs_now(selection: Selection, **asking: Unpack[Asking]) -> VerbReport:
    """Make scheduled jobs due at once. Arguments, answer and errors are those of ``cancel_jobs``."""
    return change_jobs(verbs.RUN_JOB_NOW, selection, {}, **asking)


def retry_jobs(selection: Selection, **asking: Unpack[Asking]) -> VerbReport:
    """Try jobs again now: scheduled ones are due at once; dead, cancelled and expired ones return with all attempts.

    Arguments, answer and errors are those of ``cancel_jobs``.
    """
    return change_jobs(verbs.RETRY_JOB, selection, {}, **asking)


def postpone_jobs(
    selection: Selection, *, delay: Duration | None = None, run_at: datetime | None = None, **asking: Unpack[Asking]
) -> VerbReport:
    """Have jobs start later; one that would expire before that is refused.

    Args:
        selection: as for ``cancel_jobs``.
        delay: not before this long from now.
        run_at: not before this aware time.
        asking: as for ``cancel_jobs``, and so are answer and errors.
    """
    if (delay is None) is (run_at is None):
        raise InvalidOption("give either delay or run_at")
    if run_at is not None:
        options = {"run_at": read_time("run_at", run_at).isoformat()}
        return change_jobs(verbs.POSTPONE_JOB, selection, options, **asking)
    return change_jobs(verbs.POSTPONE_JOB, selection, {"delay_seconds": read_duration("delay", delay)}, **asking)


def set_job_priorities(selection: Selection, priority: int | str, **asking: Unpack[Asking]) -> VerbReport:
    """Give jobs that wait another priority, -100 to 100 or a named level; the rest is as for ``cancel_jobs``."""
    number = resolve_priority(priority, get_settings().priority_levels)
    return change_jobs(verbs.SET_JOB_PRIORITY, selection, {"priority": number}, **asking)


def move_jobs(selection: Selection, queue: str, **asking: Unpack[Asking]) -> VerbReport:
    """Have jobs wait in another queue, which must exist; the rest is as for ``cancel_jobs``.

    Raises:
        UnknownQueue: there is no such queue.
    """
    return change_jobs(verbs.MOVE_JOB, selection, {"queue": check_queue_name(queue)}, **asking)


def release_jobs(selection: Selection, **asking: Unpack[Asking]) -> VerbReport:
    """Make parked jobs pending, whatever they were parked for; the rest is as for ``cancel_jobs``.

    One whose reason still holds may be parked again by the next claim.
    """
    return change_jobs(verbs.RELEASE_JOB, selection, {}, **asking)


def redrive_jobs(
    selection: Selection, *, keep_attempts: bool = False, per_second: float | None = None, **asking: Unpack[Asking]
) -> VerbReport:
    """Send dead letters back to their queues, as the same jobs: id, history, steps and idempotency key stay.

    Cancelled and expired jobs come back too where the selection names them; their steps are forgotten, for nobody was
    to need them. A former expiry or deadline is gone.

    Args:
        selection: as for ``cancel_jobs``; a filter without states means the dead letters.
        keep_attempts: grant one attempt more than were used, instead of all of them anew.
        per_second: at most so many; the broker's own job then does it, unless ``in_background=False`` is given.
        asking: as for ``cancel_jobs``, and so are answer and errors.
    """
    options: dict[str, Any] = {"keep_attempts": bool(keep_attempts)}
    if per_second is not None:
        options["per_second"] = _read_pace(per_second)
    return change_jobs(verbs.REDRIVE_JOB, selection, options, **asking)


def discard_jobs(selection: Selection, **asking: Unpack[Asking]) -> VerbReport:
    """End the stay of dead letters: they are *cancelled* from now on, and go with the history when it is old.

    Arguments, answer and errors are those of ``cancel_jobs``.
    """
    return change_jobs(verbs.DISCARD_JOB, selection, {}, **asking)


def purge_queue(queue: str, **asking: Unpack[Asking]) -> VerbReport:
    """Cancel all pending jobs of a queue; what is scheduled, blocked, parked or running stays.

    Args:
        queue: its name.
        asking: as for ``cancel_jobs``, and so are answer and errors.

    Raises:
        UnknownQueue: there is no such queue.
    """
    chosen = JobFilter(states=(JobState.PENDING.label,), queue=queue)
    return change_jobs(verbs.PURGE_QUEUE, chosen, {}, **asking)


def edit_job(job_id: int, arguments: Mapping[str, object], **asking: Unpack[Asking]) -> VerbReport:
    """Replace the arguments of one job that waits or is dead; they are checked as ``enqueue`` does.

    Args:
        job_id: of the job.
        arguments: all of the handler's arguments by name.
        asking: as for ``cancel_jobs``, and so are answer and errors.

    Raises:
        UnknownJobType: this process does not know the job's type, so that nothing can be checked.
        InvalidArguments, InvalidPayload, PayloadTooLarge: the arguments do not fit the handler, or cannot be stored.
    """
    options = {"arguments": _check_mapping(arguments)}
    return change_jobs(verbs.EDIT_JOB, read_job_id(job_id), options, **asking)


def clone_job(
    job_id: int,
    *,
    queue: str | None = None,
    priority: int | str | None = None,
    arguments: Mapping[str, object] | None = None,
    **asking: Unpack[Asking],
) -> JobHandle:
    """Store a new job that carries what another one carries, live or finished; it is due at once.

    Args:
        job_id: of the original.
        queue, priority: of the new job; by default those of the original.
        arguments: all of the handler's arguments by name; by default those of the original, as they are.
        asking: as for ``cancel_jobs``.

    Returns:
        A handle of the new job.

    Raises:
        JobNotFound: there is no such job.
        NotPermitted, UnknownQueue, UnknownJobType, InvalidArguments, InvalidPayload, PayloadTooLarge, InvalidOption,
        BrokerDatabaseError: nothing is stored.
    """
    options: dict[str, Any] = {} if arguments is None else {"arguments": _check_mapping(arguments)}
    if queue is not None:
        options["queue"] = check_queue_name(queue)
    if priority is not None:
        options["priority"] = resolve_priority(priority, get_settings().priority_levels)
    report = change_jobs(verbs.CLONE_JOB, read_job_id(job_id), options, **asking)
    raise_refusal(report)
    return JobHandle(report.created[0], asking.get("using") or get_settings().database)


def _check_mapping(arguments: Mapping[str, object]) -> Mapping[str, object]:
    if not isinstance(arguments, Mapping):
        raise InvalidPayload("arguments", f"must be a mapping by name, not {show_value(arguments)}")
    return arguments


def _read_pace(per_second: float) -> float:
    if (
        isinstance(per_second, bool)
        or not isinstance(per_second, int | float)
        or not 0 < per_second <= _FASTEST_PER_SECOND
    ):
        raise InvalidOption(f"per_second must be a number above 0, at most {_FASTEST_PER_SECOND:,.0f}")
    return float(per_second)
