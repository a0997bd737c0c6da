"""Priorities by number and by name."""

import pytest

from django_pgbroker.domain.errors import InvalidOption
from django_pgbroker.domain.priorities import resolve_priority

LEVELS = {"user": 50, "normal": 0}


@pytest.mark.parametrize(("given", "number"), [(-100, -100), (0, 0), (100, 100), ("user", 50), ("normal", 0)])
def test_numbers_within_bounds_and_known_levels_are_taken(given, number):
    assert resolve_priority(given, LEVELS) == number


@pytest.mark.parametrize("given", [-101, 101, 10**9, 1.0, True, None, float("nan")])
def test_anything_that_is_no_whole_number_within_bounds_is_refused(given):
    with pytest.raises(InvalidOption, match="whole number from -100 to 100"):
        resolve_priority(given, LEVELS)


def test_without_levels_none_are_promised():
    with pytest.raises(InvalidOption, match="from -100 to 100$"):
        resolve_priority(101, {})


def test_an_unknown_level_is_refused_with_the_closest_one():
    with pytest.raises(InvalidOption, match="Did you mean 'user'"):
        resolve_priority("usr", LEVELS)
