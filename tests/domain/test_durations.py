"""Durations in words."""

import pytest

from django_pgbroker.domain.durations import describe_age, describe_seconds


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 ms"), (0, "0 ms"), (0.34, "340 ms"), (1, "1.0 s"), (9.96, "10.0 s"), (12.7, "12 s"), (60, "1 min"),
        (200, "3 min 20 s"), (3600, "1 h"), (3659, "1 h"), (3660, "1 h 1 min"), (90_000, "1 d 1 h"),
        (86_400 * 400, "400 d"),
    ],
)  # fmt: skip
def test_a_duration_has_two_units_at_most(seconds: float, words: str):
    assert describe_seconds(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "just now"), (0.9, "just now"), (1.5, "1 s ago"), (12.7, "12 s ago"), (200, "3 min 20 s ago")],
)
def test_an_age_speaks_in_whole_seconds(seconds: float, words: str):
    assert describe_age(seconds) == words
