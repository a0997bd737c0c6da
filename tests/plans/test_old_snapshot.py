"""While somebody's transaction stays open, claims keep their price although dead entries pile up at the head."""

import pytest

from django_pgbroker.domain.states import JobState
from tests.maintenance.waiting import wait_until
from tests.plans.churn import Meter, old_snapshot, stream

pytestmark = pytest.mark.drill

#: The claims of the same worker, in the same run.
MOST_TIMES = 3


@pytest.fixture
def quick_settings() -> None:
    """The settings as they are by default."""


@pytest.mark.parametrize("seconds", [10, 60])
def test_claims_cost_no_more_than_three_times_as_much_beside_an_old_snapshot(declare, start, monkeypatch, seconds):
    declare("tests.nothing")(lambda: None)
    meter = Meter(monkeypatch)
    with stream("tests.nothing"):
        start(concurrency=10)
        meter.watch(3)
        without = meter.watch(10)
        with old_snapshot():
            beside = meter.watch(seconds)
    print(f"\nwithout: {without}\nbeside:  {beside}\nratio:   {beside.p99 / without.p99:.2f}")  # noqa: T201 - by -s

    assert beside.p99 <= MOST_TIMES * without.p99


def test_an_urgent_job_is_found_below_the_place_that_a_busy_worker_has_reached(declare, start, monkeypatch):
    nothing = declare("tests.nothing")(lambda: None)
    meter = Meter(monkeypatch)
    with stream("tests.nothing"), old_snapshot():
        start(concurrency=10)
        claims = meter.watch(10)
        from_the_head = [claim for claim in claims[-20:] if claim.is_from_the_head]
        assert len(from_the_head) < 5, "a worker that starts from the head finds it anyway"
        urgent = nothing.using(priority=100).enqueue()
        wait_until(lambda: urgent.status() is JobState.COMPLETED, "ten seconds, and a claim", seconds=15)
