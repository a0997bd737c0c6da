"""The options of one job as a caller gives them, checked before any SQL. Used by enqueue."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from django_pgbroker.domain.errors import InvalidOption, show_value
from django_pgbroker.domain.names import suggest

type Duration = timedelta | float
type Moment = datetime | timedelta | float

LONGEST_DELAY = timedelta(days=36_525)
LONGEST_TEXT = 200

#: Of a job, a worker, or anything else that the database numbers.
LARGEST_ID = 2**63 - 1

#: What an option is called elsewhere.
_OTHER_WORDS = {
    "alias": "using",
    "backoff": "retry",
    "countdown": "delay",
    "database": "using",
    "db": "using",
    "eta": "run_at",
    "max_retries": "max_attempts",
    "priority_level": "priority",
    "queue_name": "queue",
    "tenant_id": "tenant",
    "time_limit": "timeout",
}


@dataclass(frozen=True)
class JobOptions:
    """What a caller may say about one job; ``None`` leaves it to the job type and the settings.

    Args:
        queue: where it waits.
        priority: -100 to 100 or a named level; higher runs first.
        delay: not before this long from now.
        run_at: not before this aware time; a time in the past means now.
        expires: the latest *start*, as a span from now or an aware time; later the job ends as *expired*.
        timeout: the longest *attempt*, a timedelta or a number, in whole seconds.
        deadline: the latest *finish*, as a span from now or an aware time.
        max_attempts: 1 to 1,000.
        tenant: whose job it is.
        correlation_id: up to 200 characters that follow the job through logs and history.
        created_by: who asked for it, up to 200 characters.
    """

    queue: str | None = None
    priority: int | str | None = None
    delay: Duration | None = None
    run_at: datetime | None = None
    expires: Moment | None = None
    timeout: Duration | None = None
    deadline: Moment | None = None
    max_attempts: int | None = None
    tenant: str | None = None
    correlation_id: str | None = None
    created_by: str | None = None

    def __post_init__(self) -> None:
        if self.delay is not None and self.run_at is not None:
            raise InvalidOption("give either delay or run_at, not both")
        if self.expires is None and self.deadline is None:
            return
        begin = self.delay if self.delay is not None else self.run_at
        for name in ("expires", "deadline"):
            _check_after(name, getattr(self, name), begin)


NO_OPTIONS = JobOptions()

#: The keywords of ``using()`` and ``enqueue()``: the options, and the alias of the database.
OPTION_NAMES = (*(each.name for each in fields(JobOptions)), "using")


def describe_unknown(name: str, known: Iterable[str]) -> str:
    """What to say of a keyword that is no option, with the one that was probably meant.

    Args:
        name: the keyword.
        known: the options there are.
    """
    options = sorted(known)
    meant = _OTHER_WORDS.get(name)
    hint = f"Did you mean {meant!r}?" if meant in options else suggest(name, options)
    return f"{name!r} is no option. {hint or 'Options: ' + ', '.join(options) + '.'}"


@dataclass(frozen=True)
class Instant:
    """A checked time: seconds from the database's clock, or an aware time. Both ``None`` means not given."""

    seconds: float | None = None
    at: datetime | None = None


NOT_GIVEN = Instant()


def read_duration(name: str, value: Any) -> float:
    """A span as seconds.

    Args:
        name: of the option, for the message.
        value: a timedelta, or a number of seconds.

    Raises:
        InvalidOption: it is neither, negative, not finite, or more than 100 years.
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidOption(f"{name} must be a timedelta or a number of seconds, not {show_value(value)}")
    if not 0 <= seconds <= LONGEST_DELAY.total_seconds():
        raise InvalidOption(f"{name} must be from 0 seconds to 100 years, not {show_value(value)}")
    return float(seconds)


def read_time(name: str, value: Any) -> datetime:
    """An aware time, at most 100 years ahead.

    Raises:
        InvalidOption: it is naive, no datetime, or too far away.
    """
    if not isinstance(value, datetime):
        raise InvalidOption(f"{name} must be an aware datetime, not {show_value(value)}")
    if value.utcoffset() is None:
        raise InvalidOption(f"{name} {value.isoformat()} has no time zone; use django.utils.timezone.make_aware(...)")
    try:
        instant = value.astimezone(UTC)
        is_near = instant <= datetime.now(UTC) + LONGEST_DELAY
    except OverflowError:
        is_near = False
    if not is_near:
        raise InvalidOption(f"{name} {value.isoformat()} is more than 100 years ahead")
    return instant


def read_moment(name: str, value: Any) -> Instant:
    """A span from now or an aware time; ``None`` stays open.

    Raises:
        InvalidOption: as ``read_duration`` and ``read_time``.
    """
    if value is None:
        return NOT_GIVEN
    if isinstance(value, datetime):
        return Instant(at=read_time(name, value))
    return Instant(seconds=read_duration(name, value))


def read_seconds(name: str, value: Any, low: int, high: int) -> int:
    """A span in whole seconds, as a timedelta or a number.

    Raises:
        InvalidOption: as ``read_whole``.
    """
    if type(value) is int and low <= value <= high:
        return value
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if not _is_whole(number) or not low <= number <= high:
        raise InvalidOption(
            f"{name} must be a whole number of seconds from {low:,} to {high:,}, not {show_value(value)}"
        )
    return int(number)


def read_whole(name: str, value: Any, low: int, high: int) -> int:
    """A whole number within bounds.

    Raises:
        InvalidOption: it is no whole number, or out of bounds.
    """
    if type(value) is int and low <= value <= high:
        return value
    if not _is_whole(value) or not low <= value <= high:
        raise InvalidOption(f"{name} must be a whole number from {low:,} to {high:,}, not {show_value(value)}")
    return int(value)


def _is_whole(number: object) -> bool:
    return type(number) is int or (type(number) is float and number.is_integer())


def read_text(name: str, value: Any) -> str | None:
    """A short text of printable characters, or ``None``.

    Raises:
        InvalidOption: it is no text, too long, or has characters that cannot be shown.
    """
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT or not value.isprintable():
        raise InvalidOption(f"{name} must be 1 to {LONGEST_TEXT} printable characters, not {show_value(value)}")
    return str.__str__(value)


def _check_after(name: str, limit: Any, begin: Any) -> None:
    # a span and a time can only be compared by the database's clock; such a job simply expires
    if limit is None or begin is None or isinstance(limit, datetime) is not isinstance(begin, datetime):
        return
    read_moment(name, limit)
    read_moment("delay or run_at", begin)
    if isinstance(limit, datetime):
        is_late = limit <= begin
    else:
        is_late = read_duration(name, limit) <= read_duration("delay", begin)
    if is_late:
        raise InvalidOption(f"{name} ({limit!r}) is not after the earliest start ({begin!r}): the job could never run")
