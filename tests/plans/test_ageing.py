"""A job of low priority is not starved (S10): it starts within its bound, whatever the stream of urgent ones.

The bound is the difference of the priorities times the ageing of the queue. Time is the clock of the broker, moved by
the test, so that a bound of minutes takes no minutes.
"""

from collections.abc import Callable
from itertools import count

import pytest

from django_pgbroker.store.gateway import Gateway
from tests.store.jobs import Shop

AGEING_SECONDS = 1
BOUND_SECONDS = 100 * AGEING_SECONDS
STEP_SECONDS = 2
A_STEP = 3


class Stream:
    """Jobs of priority 100 that come as fast as they are claimed, and one of priority 0 among them."""

    def __init__(self, gateway: Gateway, shop: Shop, ageing_seconds: int) -> None:
        self._gateway = gateway
        self._shop = shop
        shop.rows.run("update pgbroker.queue set ageing_seconds = %s", ageing_seconds)

    def enqueue(self, priority: int) -> int:
        [(job_id,)] = self._gateway.fetch(
            "enqueue_job",
            {
                "queue": "default", "job_type": "shop.send_receipt", "tenant": "default", "arguments": "{}",
                "version": 1, "priority": priority, "max_attempts": 3, "timeout_seconds": 60,
                "correlation_id": None, "created_by": None, "headers": None,
            },
        )  # fmt: skip
        return int(job_id)

    def seconds_until_claimed(self, move_clock: Callable[[str], None], limit_seconds: int) -> int | None:
        """How long the job of priority 0 waits while every claim could be filled by urgent ones; None: too long."""
        low = self.enqueue(0)
        for waited in count(0, STEP_SECONDS):
            if waited > limit_seconds:
                return None
            move_clock(f"{waited} s")
            for _ in range(A_STEP):
                self.enqueue(100)
            claimed = [claim.id for claim in self._shop.claim(self._gateway, A_STEP)]
            assert len(claimed) == A_STEP
            if low in claimed:
                return waited
        raise AssertionError("unreachable")


def test_a_job_of_priority_zero_starts_within_its_ageing_bound_under_a_steady_stream_of_priority_100(
    gateway, shop, move_clock
):
    waited = Stream(gateway, shop, AGEING_SECONDS).seconds_until_claimed(move_clock, BOUND_SECONDS + 2 * STEP_SECONDS)

    assert waited is not None, "it starved"
    # The moment after the bound it goes before everything that has just come.
    assert BOUND_SECONDS - STEP_SECONDS <= waited <= BOUND_SECONDS + STEP_SECONDS


def test_it_is_the_ageing_of_the_queue_that_starts_it(gateway, shop, move_clock):
    stream = Stream(gateway, shop, 10 * AGEING_SECONDS)
    assert stream.seconds_until_claimed(move_clock, BOUND_SECONDS + 2 * STEP_SECONDS) is None


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_worker_starts_it_within_the_bound_too(declare, run_until_empty, rows, move_clock, concurrency):
    """After the urgent jobs that came within its bound, and before all that came later."""
    started = []
    note = declare("tests.note")(lambda name: started.extend([name]))
    rows.queue()
    rows.run("update pgbroker.queue set ageing_seconds = %s", AGEING_SECONDS)
    move_clock("-1000 s")
    note.enqueue(name="low")
    came = range(5, 2 * BOUND_SECONDS, 10)
    for second in came:
        move_clock(f"{second - 1000} s")
        note.using(priority=100).enqueue(name=f"after {second} s")
    move_clock("0 s")

    run_until_empty(concurrency=concurrency)

    within = {f"after {second} s" for second in came if second < BOUND_SECONDS}
    before = started[: started.index("low")]
    # Several slots start their jobs beside each other, each at most one job early or late.
    assert len(started) == len(came) + 1
    assert len(set(before) ^ within) <= 2 * (concurrency - 1)
