"""What a verb is to be done to, in words for the confirmation page: one row, a selection, or what filters leave."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import JobType, Queue
from django_pgbroker.operations.job_changes import MOST_AT_ONCE, Matches

#: More rows are not named one by one.
_NAMED_ROWS = 10


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Args:
        target: what the operation takes: an id, ids, a filter, the name of a queue.
        phrase: what it is in words, as in ``3 jobs in queue mail``.
        back_url: where to go afterwards.
        subject: the queue or worker, where it is one.
        rows: the chosen ones in words, as far as they are named.
        remark: what else is to be known about the choice.
        hidden: what the confirmation must send again.
        is_many: whether it may be more than one.
    """

    target: Any
    phrase: str
    back_url: str
    subject: Any = None
    rows: Sequence[str] = ()
    remark: str = ""
    hidden: Sequence[tuple[str, str]] = ()
    is_many: bool = False


def choose_jobs(jobs: Sequence[Any], ids: Sequence[int], name: str, back_url: str, action: str) -> Choice:
    """A selection of jobs on a list.

    Args:
        jobs: those of them that are still on the screen, with queue and job type.
        ids: all that were selected.
        name: the verbose name of one, as in ``dead letter``.
        back_url: the list.
        action: what the list must be sent again.
    """
    queues = {job.queue.name for job in jobs}
    where = f" in queue {queues.pop()}" if len(queues) == 1 else ""
    named = [f"{job.pk}: {job.job_type.name}, queue {job.queue.name}" for job in jobs[:_NAMED_ROWS]]
    if len(jobs) > _NAMED_ROWS:
        named.append(f"and {len(jobs) - _NAMED_ROWS:,} more")
    gone = len(ids) - len(jobs)
    return Choice(
        list(ids),
        f"{count_words(len(ids), name)}{where}",
        back_url,
        rows=named,
        remark=f"{count_words(gone, name)} of them left this list meanwhile." if gone else "",
        hidden=[("action", action), ("index", "0"), *(("_selected_action", str(job_id)) for job_id in ids)],
        is_many=len(ids) > 1,
    )


def read_filter(states: frozenset[JobState], filters: dict[str, str]) -> JobFilter:
    """The filters of a list as those of a verb.

    Args:
        states: of the jobs that are meant.
        filters: the parameters of the list; names are looked up.

    Raises:
        ValueError: a number that no queue or job type has.
        InvalidName: a name that jobs of today cannot have.
    """
    return JobFilter(
        states=tuple(sorted(state.label for state in states)),
        queue=_find_name(Queue, filters.get("queue")),
        job_type=_find_name(JobType, filters.get("job_type")),
    )


def describe_filter(chosen: JobFilter, matches: Matches, name: str) -> str:
    """All that match in words: ``3 dead letters in queue mail``, ``more than 2,000 jobs``.

    Args:
        chosen: the filter.
        matches: how many, as far as they were counted.
        name: the verbose name of one.
    """
    where = f" in queue {chosen.queue}" if chosen.queue else ""
    what = f" of type {chosen.job_type}" if chosen.job_type else ""
    if matches.is_exact:
        number = count_words(matches.count, name)
    elif matches.count > MOST_AT_ONCE:
        number = f"more than {count_words(MOST_AT_ONCE, name)}"
    else:
        # the count ended at a bound of the rows it looks at
        number = f"at least {count_words(matches.count, name)}"
    return f"{number}{what}{where}"


def count_words(count: int, name: str) -> str:
    """``1 job``, ``3 jobs``."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _find_name(model: Any, number: str | None) -> str | None:
    if number is None:
        return None
    found: str | None = model.objects.filter(pk=int(number)).values_list("name", flat=True).first()
    if found is None:
        raise ValueError(f"there is no {model._meta.verbose_name} {number}")
    return found
