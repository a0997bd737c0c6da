"""While somebody's transaction stays open, claims keep their price although dead entries pile up at the head."""

import pytest

from django_pgbroker.worker.lane import Lane
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
    print(f"\nwithout: {without}\nbeside:  {beside}\nratio:   {beside.p99 / without.p99:.2f}")

    assert beside.p99 <= MOST_TIMES * without.p99
