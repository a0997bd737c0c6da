"""B041: a statement with a limit takes no more than that, whatever the planner does with its subquery.

The claim itself is tried by tests/store/test_claim.py; here are its neighbours, which are built in the same way.
"""

from collections.abc import Callable

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.store.expire import expire_jobs
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.promote import promote_jobs
from django_pgbroker.store.reclaim import reclaim_jobs
from django_pgbroker.store.unknown_types import park_unknown_jobs, wake_known_jobs
from tests.store.jobs import Shop

COUNT = 60
PLANNERS = {
    "as the broker sets it": (),
    "nested loops": ("hashjoin = off", "mergejoin = off", "material = off", "memoize = off"),
    "plain": ("hashjoin = off", "mergejoin = off", "material = off", "seqscan = on", "sort = on", "indexscan = off"),
}


def fill(shop: Shop, state: JobState, what: str = "") -> None:
    shop.rows.run("analyze pgbroker.job")  # of the empty table: stale from the first row on
    for _ in range(COUNT):
        shop.job(state, lease_in=-1)
    if what:
        shop.rows.run(f"update pgbroker.job set {what}")


def promote(gateway: Gateway, shop: Shop, limit: int) -> int:
    return promote_jobs(gateway, shop.queue, limit).moved


def expire(gateway: Gateway, shop: Shop, limit: int) -> int:
    return len(expire_jobs(gateway, limit))


def reclaim(gateway: Gateway, shop: Shop, limit: int) -> int:
    return len(reclaim_jobs(gateway, limit))


def park(gateway: Gateway, shop: Shop, limit: int) -> int:
    return sum(moved.jobs for moved in park_unknown_jobs(gateway, limit))


def wake(gateway: Gateway, shop: Shop, limit: int) -> int:
    return sum(moved.jobs for moved in wake_known_jobs(gateway, limit))


def prepare_promote(shop: Shop) -> None:
    fill(shop, JobState.SCHEDULED)


def prepare_expire(shop: Shop) -> None:
    fill(shop, JobState.PENDING, "expires_at = now() - interval '1 s'")


def prepare_reclaim(shop: Shop) -> None:
    fill(shop, JobState.RUNNING)


def prepare_park(shop: Shop) -> None:
    shop.rows.worker(knows=[])
    fill(shop, JobState.PENDING)


def prepare_wake(shop: Shop) -> None:
    prepare_park(shop)
    park_unknown_jobs(shop.rows.gateway, COUNT)
    shop.rows.worker(knows=[shop.job_type])


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize(
    ("prepare", "take"),
    [
        (prepare_promote, promote), (prepare_expire, expire), (prepare_reclaim, reclaim), (prepare_park, park),
        (prepare_wake, wake),
    ],
    ids=["promote", "expire", "reclaim", "park", "wake"],
)  # fmt: skip
def test_b041_a_batch_is_never_larger_than_its_limit_and_takes_nothing_twice(
    gateway: Gateway, shop: Shop, planner: str, prepare: Callable[[Shop], None], take: Callable[..., int]
) -> None:
    prepare(shop)
    for setting in PLANNERS[planner]:
        gateway.connection.execute(f"set enable_{setting}")
    assert [take(gateway, shop, 1) for _ in range(10)] == [1] * 10
    assert [take(gateway, shop, 7) for _ in range(9)] == [7] * 7 + [1, 0]
