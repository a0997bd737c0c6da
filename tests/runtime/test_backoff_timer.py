"""The waits between two tries to reach a database that is away."""

import pytest

from django_pgbroker.runtime.backoff_timer import BackoffTimer


def test_waits_double_from_the_first_to_the_cap_and_at_least_half_of_each_is_certain():
    timer = BackoffTimer(first_seconds=0.1, cap_seconds=5.0)
    waits = [timer.next_seconds() for _ in range(12)]
    for step, wait in enumerate(waits):
        longest = min(0.1 * 2**step, 5.0)
        assert longest / 2 <= wait <= longest
    assert sum(waits) > 15, "twelve tries take long: no busy loop"


def test_a_reset_begins_again_with_the_shortest_wait():
    timer = BackoffTimer()
    for _ in range(10):
        timer.next_seconds()
    timer.reset()
    assert timer.next_seconds() <= 0.1


def test_processes_that_lost_the_same_server_do_not_come_back_at_the_same_moment():
    timers = [BackoffTimer() for _ in range(20)]
    assert len({timer.next_seconds() for timer in timers}) == 20


@pytest.mark.parametrize("cap", [0.25, 0.1])
def test_no_wait_is_longer_than_the_cap(cap):
    timer = BackoffTimer(first_seconds=0.1, cap_seconds=cap)
    assert max(timer.next_seconds() for _ in range(50)) <= cap
