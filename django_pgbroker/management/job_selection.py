"""Which jobs a command is for: ids, or a filter made of options. Used by ``pgbroker_jobs`` and ``pgbroker_redrive``."""

from argparse import Namespace
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.management.moments import place_in_past, read_moment
from django_pgbroker.management.paging import read_id

_TEXTS = ("queue", "type", "tenant", "error_class", "error")
_TIMES = ("created_after", "created_before", "finished_after", "finished_before")

#: A trial counts up to here what a job of the broker would do.
MOST_COUNTED = 1_000_000
ROWS_COUNTED = 20_000_000

FILTER_EXAMPLES = "--state dead --queue mail --error 'no such order' --finished-after 2h"


def add_filter_options(parser: CommandParser) -> None:
    """Declare the options of a filter: all that are given must hold."""
    group = parser.add_argument_group(
        "filter", "All that are given must hold. WHEN is a span that has passed (2h), or a time (2026-11-30T07:00Z)."
    )
    group.add_argument(
        "--state",
        action="append",
        choices=[state.label for state in JobState],
        metavar="STATE",
        help=f"may be given more than once: {', '.join(state.label for state in JobState)}",
    )
    group.add_argument("--queue", metavar="NAME", help="in this queue")
    group.add_argument("--type", metavar="NAME", help="of this job type")
    group.add_argument("--tenant", metavar="NAME", help="of this tenant")
    group.add_argument("--error-class", metavar="CLASS", help="whose last error is of this class, with its module")
    group.add_argument("--error", metavar="TEXT", help="whose last error contains this text, in whatever case")
    for name in _TIMES:
        event, _, side = name.partition("_")
        words = f"{'enqueued' if event == 'created' else 'ended'} {'then or later' if side == 'after' else 'earlier'}"
        group.add_argument(f"--{name.replace('_', '-')}", type=read_moment, metavar="WHEN", help=words)


def add_selection(parser: CommandParser) -> None:
    """Declare ids and the options of a filter."""
    parser.add_argument("ids", nargs="*", type=read_id, metavar="ID", help="of a job; or give a filter")
    add_filter_options(parser)
    add_foreground_option(parser)


def add_foreground_option(parser: CommandParser) -> None:
    """Declare where a large number is done."""
    parser.add_argument(
        "--foreground",
        action="store_true",
        help="do a large number in this process, instead of leaving it to a job of the broker",
    )


def read_filter(options: Namespace) -> JobFilter:
    """The filter that the options make; an empty one where none was given.

    Raises:
        InvalidOption, InvalidName: a value that no job can have.
        django.db.DatabaseError: the database, whose clock the spans are by, did not answer.
    """
    times: dict[str, Any] = {name: place_in_past(getattr(options, name), options.database) for name in _TIMES}
    return JobFilter(
        states=tuple(options.state or ()),
        queue=options.queue,
        job_type=options.type,
        tenant=options.tenant,
        error_class=options.error_class,
        error=options.error,
        **times,
    )


def read_selection(options: Namespace) -> list[int] | JobFilter:
    """The ids, or the filter.

    Raises:
        CommandError: neither was given, or both.
        InvalidOption, InvalidName, django.db.DatabaseError: as ``read_filter``.
    """
    has_filter = any(getattr(options, name) is not None for name in ("state", *_TEXTS, *_TIMES))
    if options.ids and has_filter:
        raise CommandError("give ids or a filter, not both: the ids say already which jobs are meant")
    if options.ids:
        return list(dict.fromkeys(options.ids))
    if not has_filter:
        raise CommandError(f"which jobs? Give their ids, or a filter, as in {FILTER_EXAMPLES}")
    return read_filter(options)
