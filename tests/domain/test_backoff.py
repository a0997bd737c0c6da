"""Waits between attempts: doubled, capped before they overflow, spread by full jitter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_pgbroker.domain.backoff import Constant, Exponential, RetryPolicy
from django_pgbroker.domain.errors import ConfigurationError


def always(number):
    return lambda: number


def test_the_bound_doubles_until_the_cap():
    policy = Exponential(base_seconds=1, factor=2, cap_seconds=10, jitter=False)

    assert [policy.delay_seconds(attempt, always(0.0)) for attempt in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@pytest.mark.parametrize("attempt", [16, 50, 2_000, 32_767, 10**9])
def test_a_large_attempt_waits_for_the_cap_and_no_longer(attempt):
    assert (
        Exponential(base_seconds=5, factor=5, cap_seconds=3600, jitter=False).delay_seconds(attempt, always(0.0))
        == 3600
    )


@pytest.mark.parametrize(("drawn", "seconds"), [(0.0, 0.0), (0.25, 1.0), (0.999, 3.996)])
def test_full_jitter_draws_from_zero_to_the_bound(drawn, seconds):
    assert Exponential().delay_seconds(3, always(drawn)) == pytest.approx(seconds)


@given(
    st.floats(0, 1000),
    st.floats(1, 1000),
    st.floats(1000, 10**6),
    st.integers(-5, 10**6),
    st.floats(0, 1, exclude_max=True),
)
def test_no_wait_is_negative_or_beyond_the_cap(base, factor, cap, attempt, drawn):
    assert 0 <= Exponential(base, factor, cap).delay_seconds(attempt, always(drawn)) <= cap


def test_a_constant_wait_is_always_the_same():
    assert {Constant(30).delay_seconds(attempt, always(0.5)) for attempt in (1, 2, 2000)} == {30.0}


@pytest.mark.parametrize(
    "build",
    [
        lambda: Exponential(base_seconds=-1),
        lambda: Exponential(base_seconds=float("nan")),
        lambda: Exponential(base_seconds="1"),
        lambda: Exponential(base_seconds=10, cap_seconds=5),
        lambda: Exponential(cap_seconds=float("inf")),
        lambda: Exponential(cap_seconds=10**12),
        lambda: Exponential(factor=0.5),
        lambda: Exponential(factor=float("inf")),
        lambda: Exponential(factor=True),
        lambda: Constant(-1),
        lambda: Constant(True),
        lambda: Constant(float("inf")),
        lambda: Constant(None),
    ],
)
def test_a_policy_that_makes_no_sense_cannot_be_built(build):
    with pytest.raises(ConfigurationError):
        build()


def test_both_policies_and_any_object_of_that_shape_are_retry_policies():
    class Linear:
        def delay_seconds(self, attempt, random):
            return 10.0 * attempt

    assert all(isinstance(policy, RetryPolicy) for policy in (Exponential(), Constant(1), Linear()))
    assert not isinstance(30, RetryPolicy)
