"""What a verb is to be done to, in words for the confirmation page: one row, a selection, or what filters leave."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django_pgbroker.admin.display import is_key
from django_pgbroker.domain.errors import InvalidOption
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import JobType, Queue
from django_pgbroker.operations.job_changes import MOST_AT_ONCE, MOST_COUNTED_ROWS, Matches

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
        short: the same without where, as in ``3 jobs``, where the button can say it; or empty.
        remark: what else is to be known about the choice.
        hidden: what the confirmation must send again.
        is_many: whether it may be more than one.
    """

    target: Any
    phrase: str
    back_url: str
    subject: Any = None
    rows: Sequence[str] = ()
    short: str = ""
    remark: str = ""
    hidden: Sequence[tuple[str, str]] = ()
    is_many: bool = False


def choose_jobs(jobs: Sequence[Any], gone: int, name: str, back_url: str, action: str) -> Choice:
    """A selection of jobs on a list.

    Args:
        jobs: those of the selected ones that the list has, with queue and job type; no others are meant.
        gone: how many it does not have any more.
        name: the verbose name of one, as in ``dead letter``.
        back_url: the list.
        action: what the list must be sent again.
    """
    queues = {job.queue.name for job in jobs}
    where = f" in queue {queues.pop()}" if len(queues) == 1 else ""
    named = [f"{job.pk}: {job.job_type.name}, queue {job.queue.name}" for job in jobs[:_NAMED_ROWS]]
    if len(jobs) > _NAMED_ROWS:
        named.append(f"and {len(jobs) - _NAMED_ROWS:,} more")
    number = count_words(len(jobs), name)
    return Choice(
        [job.pk for job in jobs],
        f"{number}{where}",
        back_url,
        rows=named,
        short=number,
        remark=describe_gone(gone, name) if gone else "",
        hidden=[("action", action), ("index", "0"), *(("_selected_action", str(job.pk)) for job in jobs)],
        is_many=len(jobs) > 1,
    )


def describe_gone(count: int, name: str) -> str:
    """What to say of selected rows that the list does not have."""
    return f"{count_words(count, name)} {'is' if count == 1 else 'are'} not on this list any more, and left alone."


def read_filter(states: frozenset[JobState], filters: dict[str, str]) -> JobFilter:
    """The filters of a list as those of a verb.

    Args:
        states: of the jobs that are meant.
        filters: the parameters of the list; names are looked up.

    Raises:
        InvalidOption: a number that no queue or job type has.
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
    elif not matches.count:
        number = f"the {name}s"
    else:
        # the count ended at a bound of the rows it looks at
        number = f"at least {count_words(matches.count, name)}"
    return f"{number}{what}{where}"


def remark_on_matches(matches: Matches, name: str) -> str:
    """What else is to be said of all that match; empty when they were counted to the end.

    Args:
        matches: how many, as far as they were counted.
        name: the verbose name of one.
    """
    if matches.is_exact:
        return ""
    if matches.count:
        return "A job of the broker itself will do it, and shows how far it is."
    looked = f"None was found among the {MOST_COUNTED_ROWS:,} {name}s looked at."
    return f"{looked} A job of the broker itself would look at the rest."


def count_words(count: int, name: str) -> str:
    """``1 job``, ``3 jobs``."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _find_name(model: Any, number: str | None) -> str | None:
    if number is None:
        return None
    if not is_key(number):
        raise InvalidOption(f"The filter by {model._meta.verbose_name} is no number: choose one beside the list.")
    found: str | None = model.objects.filter(pk=int(number)).values_list("name", flat=True).first()
    if found is None:
        kind = model._meta.verbose_name
        raise InvalidOption(f"There is no {kind} with the number {number}: choose one beside the list.")
    return found
