"""Spans and times as they are typed on a command line: ``90s``, ``2h``, ``7d``, ``2026-11-30T08:00+01:00``."""

import re
from argparse import ArgumentTypeError
from datetime import datetime, timedelta

_SPAN = re.compile(r"(\d{1,9})(s|min|m|h|d|w)")
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST = timedelta(days=36_525)

SPAN_HELP = "as in 90s, 15min, 2h, 7d"
MOMENT_HELP = "a time with its zone (2026-11-30T08:00+01:00, 2026-11-30T07:00Z) or a span (2h)"


def read_span(text: str) -> timedelta:
    """A span, for ``type=`` of an option.

    Raises:
        ArgumentTypeError: it is none, or longer than 100 years.
    """
    found = _SPAN.fullmatch(text.strip())
    span = timedelta(seconds=int(found[1]) * _UNITS[found[2]]) if found else None
    if span is None or span > _LONGEST:
        raise ArgumentTypeError(f"{text!r} is no span: write a number and a unit, {SPAN_HELP}")
    return span


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
