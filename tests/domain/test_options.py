"""Options of one job: absurd, naive and contradictory ones are refused before any SQL."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from django_pgbroker.domain.errors import InvalidOption
from django_pgbroker.domain.options import (
    OPTION_NAMES,
    Instant,
    JobOptions,
    describe_unknown,
    read_duration,
    read_moment,
    read_seconds,
    read_text,
    read_time,
    read_whole,
)

HUGE = pytest.param(10**5000, id="5000 digits")
NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(("given", "seconds"), [(0, 0), (1.5, 1.5), (timedelta(minutes=2), 120), (10**9, 10**9)])
def test_a_span_is_a_timedelta_or_seconds(given, seconds):
    assert read_duration("delay", given) == seconds


@pytest.mark.parametrize(
    "given",
    [
        -1,
        timedelta(seconds=-1),
        1e10,
        timedelta(days=40_000),
        float("nan"),
        float("inf"),
        True,
        "60",
        None,
        NOON,
        pytest.param(10**400, id="400 digits"),
        pytest.param(10**5000, id="5000 digits"),
    ],
)
def test_an_absurd_span_is_refused_by_name(given):
    with pytest.raises(InvalidOption, match=r"^delay must be"):
        read_duration("delay", given)


def test_a_time_keeps_its_instant_whatever_its_zone():
    tokyo = NOON.astimezone(ZoneInfo("Asia/Tokyo"))
    angeles = NOON.astimezone(ZoneInfo("America/Los_Angeles"))

    assert read_time("run_at", tokyo) == read_time("run_at", angeles) == NOON


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (datetime(2030, 6, 1), "has no time zone"),
        ("2030-06-01", "must be an aware datetime"),
        (60, "must be an aware datetime"),
        (datetime(2200, 1, 1, tzinfo=UTC), "more than 100 years ahead"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))), "more than 100 years ahead"),
    ],
)
def test_a_naive_or_absurd_time_is_refused(given, message):
    with pytest.raises(InvalidOption, match=message):
        read_time("run_at", given)


def test_a_moment_is_a_span_a_time_or_open():
    assert read_moment("expires", None) == Instant()
    assert read_moment("expires", 60) == Instant(seconds=60.0)
    assert read_moment("expires", NOON) == Instant(at=NOON)


@pytest.mark.parametrize(
    "given", [0, 1001, 1.5, True, "3", None, timedelta(milliseconds=1500), float("inf"), 10**30, HUGE]
)
def test_a_whole_number_out_of_bounds_is_refused(given):
    with pytest.raises(InvalidOption, match="max_attempts must be a whole number from 1 to 1,000"):
        read_whole("max_attempts", given, 1, 1000)


def test_a_time_out_is_a_timedelta_or_a_number_of_whole_seconds():
    assert read_seconds("timeout", timedelta(minutes=5), 1, 1000) == 300
    assert read_seconds("timeout", 300.0, 1, 1000) == 300
    for given in (0, 1001, 0.5, timedelta(seconds=1.5), True, "5", None):
        with pytest.raises(InvalidOption, match="timeout must be a whole number of seconds from 1 to 1,000"):
            read_seconds("timeout", given, 1, 1000)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("timeout_seconds", "timeout"),
        ("database", "using"),
        ("eta", "run_at"),
        ("Queue", "queue"),
        ("proirity", "priority"),
    ],
)
def test_a_word_that_is_no_option_is_told_with_the_one_that_was_meant(word, meant):
    assert describe_unknown(word, OPTION_NAMES) == f"{word!r} is no option. Did you mean {meant!r}?"


def test_a_word_that_resembles_no_option_is_told_with_all_of_them():
    assert describe_unknown("order_id", OPTION_NAMES).endswith(f"Options: {', '.join(sorted(OPTION_NAMES))}.")


@pytest.mark.parametrize("given", ["", "a\x00", "a\nb", "\ud800", "x" * 201, 7, b"a"])
def test_a_text_that_cannot_be_shown_or_stored_is_refused(given):
    with pytest.raises(InvalidOption, match="correlation_id must be 1 to 200"):
        read_text("correlation_id", given)


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 60, "run_at": NOON},
        {"delay": 60, "expires": 60},
        {"delay": timedelta(hours=2), "deadline": timedelta(hours=1)},
        {"run_at": NOON, "expires": NOON},
        {"run_at": NOON, "deadline": NOON - timedelta(seconds=1)},
    ],
)
def test_options_that_contradict_each_other_are_refused(options):
    with pytest.raises(InvalidOption):
        JobOptions(**options)


def test_a_span_and_a_time_are_not_compared_without_the_clock_of_the_database():
    assert JobOptions(delay=10**9, expires=NOON).expires == NOON
