"""Spans and times as they are typed on a command line: ``90s``, ``2h``, ``7d``, ``2026-11-30T08:00+01:00``."""

import re
from argparse import ArgumentTypeError
from datetime import datetime, timedelta

from django_pgbroker.domain.options import LONGEST_DELAY
from django_pgbroker.operations.clock import read_clock

_SPAN = re.compile(r"(\d{1,9})(s|min|m|h|d|w)")
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}

SPAN_HELP = "as in 90s, 15min, 2h, 7d"
MOMENT_HELP = "a time with its zone (2026-11-30T08:00+01:00, 2026-11-30T07:00Z) or a span (2h)"


def read_span(text: str) -> timedelta:
    """A span, for ``type=`` of an option.

    Raises:
        ArgumentTypeError: it is none, or longer than 100 years.
    """
    found = _SPAN.fullmatch(text.strip())
    seconds = int(found[1]) * _UNITS[found[2]] if found else -1
    if not 0 <= seconds <= LONGEST_DELAY.total_seconds():
        raise ArgumentTypeError(f"{text!r} is no span: write a number and a unit, {SPAN_HELP}; at most 100 years")
    return timedelta(seconds=seconds)


def read_moment(text: str) -> datetime | timedelta:
    """A time with its zone, or a span from now, for ``type=`` of an option; the option says in which direction.

    Raises:
        ArgumentTypeError: it is neither, or a time without a zone.
    """
    if _SPAN.fullmatch(text.strip()):
        return read_span(text)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is neither: write {MOMENT_HELP}") from None
    if moment.utcoffset() is None:
        raise ArgumentTypeError(f"{text!r} has no time zone: append Z for UTC, or an offset as in +01:00")
    return moment


def place_in_past(moment: datetime | timedelta | None, database: str) -> datetime | None:
    """The time that an option means where a span is one that has passed, by the clock of the database.

    Raises:
        django.db.DatabaseError: the database did not answer.
    """
    return read_clock(database) - moment if isinstance(moment, timedelta) else moment
