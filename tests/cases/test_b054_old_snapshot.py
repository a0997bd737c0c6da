"""B054: somebody's snapshot stays open, dead rows pile up at the head, and claims stay cheap all the same."""

import time
from statistics import quantiles

import pytest

from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.worker.lane import Lane
from tests.store.jobs import completed

BATCH = 100


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.drill)])
def test_b054_the_last_claims_cost_no_more_than_five_times_the_first(gateway, rival, shop, count):
    shop.fill(count)
    shop.rows.run("analyze pgbroker.job")
    lane = Lane("default", 1, shop.queue, 0.01, 5)
    seconds = []
    with rival.transaction():
        rival.connection.execute("set transaction isolation level repeatable read")
        rival.connection.execute("select 1")
        for _ in range(count // BATCH):
            look = lane.look(BATCH, time.monotonic())
            claims = shop.claim(gateway, look.batch, floor=look.floor)
            lane.learn(look, claims, None, time.monotonic())
            seconds.append(max(claim.claim_seconds for claim in claims))
            acknowledge_jobs(gateway, [completed(claim) for claim in claims])

    share = len(seconds) // 10
    first, last = (quantiles(part, n=20)[18] for part in (seconds[:share], seconds[-share:]))
    print(f"\np95 of {share} claims: first {first * 1000:.2f} ms, last {last * 1000:.2f} ms")
    assert shop.rows.one("select count(*) from pgbroker.archived_job") == count
    assert last <= 5 * max(first, 0.001)
