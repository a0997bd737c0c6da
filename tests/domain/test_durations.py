"""Durations in words."""

import pytest

from django_pgbroker.domain.durations import describe_age, describe_seconds, describe_wait


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
    [
        (-3, "just now"), (0.9, "just now"), (1.5, "1 s ago"), (2.5, "2 s ago"), (119, "119 s ago"), (120, "2 min ago"),
        (7199, "119 min ago"), (7200, "2 h ago"), (172_799, "47 h ago"), (172_800, "2 d ago"),
    ],
)  # fmt: skip
def test_an_age_has_one_unit(seconds: float, words: str):
    assert describe_age(seconds) == words


def test_what_is_to_come_has_one_unit_too():
    assert describe_wait(540.5) == "in 9 min"
    assert describe_wait(0.2) == "in 0 s"
