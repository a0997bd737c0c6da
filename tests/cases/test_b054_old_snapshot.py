"""B054: somebody's snapshot stays open, dead rows pile up at the head, and claims stay cheap all the same.

Who holds such a snapshot is told by pgbroker_doctor (tests/management/test_doctor.py).
"""

import time
from contextlib import contextmanager
from statistics import quantiles

import pytest

from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.claim import NO_FLOOR, send_claim_jobs
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.statement import statement
from django_pgbroker.worker.lane import Lane
from tests.store.jobs import completed

BATCH = 100


@contextmanager
def old_snapshot(rival):
    with rival.transaction():
        rival.connection.execute("set transaction isolation level repeatable read")
        rival.connection.execute("select 1")
        yield


class Explainer(Gateway):
    """Explains what it is sent."""

    def send(self, name, params=None):
        text = f"explain (analyze, buffers, timing off, format json) {statement(name).text}"
        return self.connection.execute(text, params, prepare=False)


def count_blocks(gateway, shop, floor):
    """How many pages a claim of one job that begins there would touch."""
    with gateway.connection.transaction(force_rollback=True):
        sent = send_claim_jobs(
            Explainer(gateway.connection), queue_id=shop.queue, job_type_ids=f"{{{shop.job_type}}}", floor=floor,
            batch=1, begin=1, lease_seconds=60, worker_id=1,
        )  # fmt: skip
        [[plan]] = sent.fetchall()
    return plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]


def test_b054_a_claim_that_begins_where_the_last_one_ended_touches_no_more_than_the_first(gateway, rival, shop):
    """As the lanes of a worker do once their claims have become dear (tests/worker/test_lane.py)."""
    shop.fill(6_000)
    first = count_blocks(gateway, shop, NO_FLOOR)
    with old_snapshot(rival):
        for _ in range(50):
            claims = shop.claim(gateway, BATCH)
            acknowledge_jobs(gateway, [completed(claim) for claim in claims])
        last = count_blocks(gateway, shop, claims[-1].claim_order)
        from_the_head = count_blocks(gateway, shop, NO_FLOOR)

    assert from_the_head > first + 50, "the dead rows are there"
    assert last <= first + 10


@pytest.mark.drill
def test_b054_the_last_claims_cost_no_more_than_five_times_the_first(gateway, rival, shop):
    shop.fill(100_000)
    shop.rows.run("analyze pgbroker.job")
    lane = Lane("default", 1, shop.queue, 0.01, 5)
    seconds = []
    with old_snapshot(rival):
        for _ in range(1_000):
            look = lane.look(BATCH, time.monotonic())
            claims = shop.claim(gateway, look.batch, floor=look.floor)
            lane.learn(look, claims, None, time.monotonic())
            seconds.append(max(claim.claim_seconds for claim in claims))
            acknowledge_jobs(gateway, [completed(claim) for claim in claims])

    first, last = (quantiles(part, n=20)[18] for part in (seconds[:100], seconds[-100:]))
    print(f"\np95 of 100 claims: first {first * 1000:.2f} ms, last {last * 1000:.2f} ms")  # noqa: T201 - the figures
    assert shop.rows.one("select count(*) from pgbroker.archived_job") == 100_000
    assert last <= 5 * max(first, 0.001)
