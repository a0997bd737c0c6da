"""Claims: in order, within the limit, never one job twice, and never what may not run."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.states import JobState
from django_pgbroker.store.claim import send_claim_jobs
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.pause import pause_queue, resume_queue


def test_a_claim_takes_the_lease_counts_the_attempt_and_brings_the_payload(gateway, shop):
    job_id = shop.job(priority=3)
    [claim] = shop.claim(gateway, worker_id=7)

    row = shop.live(job_id)
    assert (row["state"], row["attempt"], row["worker_id"], row["lease_token"]) == (1, 1, 7, claim.lease_token)
    assert row["started_at"] == row["leased_at"]
    lease = shop.rows.one("select extract(epoch from lease_expires_at - leased_at) from pgbroker.job")
    assert lease == 60
    assert claim[:8] == (job_id, claim.lease_token, shop.job_type, claim.tenant_id, shop.queue, 1, 3, 3)
    assert (claim.version, claim.arguments, claim.headers, claim.correlation_id) == (
        2, '{"order_id": 7}', '{"trace": "abc"}', "c-1",
    )  # fmt: skip


def test_the_fields_of_a_claim_are_the_columns_of_the_statement(gateway, shop):
    cursor = send_claim_jobs(
        gateway, queue_id=shop.queue, job_type_ids="{1}", batch=1, begin=1, lease_seconds=60, worker_id=1
    )
    assert tuple(column.name for column in cursor.description) == ClaimedJob._fields


def test_jobs_come_in_claim_order_and_equal_ones_in_the_order_of_their_ids(gateway, shop):
    late, urgent, early = shop.job(due_in=-10), shop.job(due_in=-5, priority=5), shop.job(due_in=-20)
    assert [claim.id for claim in shop.claim(gateway)] == [urgent, early, late]
    shop.rows.run("update pgbroker.job set state = 0, lease_token = null, claim_order = now()")
    assert [claim.id for claim in shop.claim(gateway)] == [late, urgent, early]


def test_only_as_many_claims_begin_as_there_are_free_slots_the_first_ones_in_claim_order(gateway, shop):
    late, early = shop.job(due_in=-10), shop.job(due_in=-20)
    claims = shop.claim(gateway, begin=1)
    assert [(claim.id, claim.has_begun) for claim in claims] == [(early, True), (late, False)]
    assert shop.live(early)["started_at"]
    assert shop.live(late)["started_at"] is None


def test_a_job_whose_lease_lapsed_before_is_claimed_into_a_free_slot_or_not_at_all(gateway, shop):
    shop.fill(3)
    suspect = shop.job(due_in=0)
    shop.rows.run("update pgbroker.job set lapses = 1 where id = %s", suspect)
    waiting = shop.claim(gateway, 4, begin=0)
    assert suspect not in {claim.id for claim in waiting}
    assert {(claim.has_begun, claim.left_behind) for claim in waiting} == {(False, 1)}

    shop.fill(1)
    first, second = shop.claim(gateway, 2, begin=1)
    assert (first.id, first.has_begun, second.has_begun, second.left_behind) == (suspect, True, False, 0)


def test_every_claim_has_a_larger_token_than_all_before(gateway, shop):
    shop.fill(20)
    tokens = [claim.lease_token for _ in range(4) for claim in shop.claim(gateway, 5)]
    assert len(set(tokens)) == 20
    assert min(tokens[5:10]) > max(tokens[:5])


def test_a_job_without_a_payload_is_claimed_all_the_same_so_that_it_can_fail(gateway, shop):
    job_id = shop.job()
    shop.rows.run("delete from pgbroker.job_payload")
    [claim] = shop.claim(gateway)
    assert (claim.id, claim.arguments, claim.version) == (job_id, None, None)


def test_a_floor_hides_what_lies_below_it_and_no_floor_shows_it(gateway, shop):
    old, new = shop.job(due_in=-100), shop.job(due_in=-10)
    floor = shop.rows.one("select extract(epoch from now() - interval '50 s')::float8")
    assert [claim.id for claim in shop.claim(gateway, floor=floor)] == [new]
    assert [claim.id for claim in shop.claim(gateway)] == [old]


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.SCHEDULED, JobState.BLOCKED, JobState.PARKED])
def test_only_pending_jobs_are_claimed(gateway, shop, state):
    shop.job(state, attempt=1)
    assert shop.claim(gateway) == []


def test_jobs_of_a_type_that_the_worker_does_not_know_are_left_alone(gateway, shop):
    foreign = shop.rows.job(shop.queue, job_type_id=shop.rows.job_type("other.type"))
    known = shop.job()
    before = shop.live(foreign)

    assert [claim.id for claim in shop.claim(gateway)] == [known]
    assert shop.claim(gateway, job_type_ids=[]) == []
    assert shop.live(foreign) == before


def test_jobs_of_other_queues_are_left_alone(gateway, shop):
    shop.rows.job(shop.rows.queue("other"), job_type_id=shop.job_type)
    assert shop.claim(gateway) == []


def test_an_expired_job_is_never_claimed_and_one_that_expires_later_is(gateway, shop):
    shop.job(expires_in=-0.001)
    in_time = shop.job(expires_in=60)
    assert [claim.id for claim in shop.claim(gateway)] == [in_time]


def test_a_paused_queue_gives_nothing_to_workers_that_know_nothing_of_it_yet(rivals, shop):
    shop.fill(100)
    caller = CallerGateway()
    pause_queue(caller, "default", "tests", "code", None)

    assert [shop.claim(rival) for rival in rivals] == [[], [], [], []]
    assert shop.rows.one("select count(*) from pgbroker.job where state = 0 and attempt = 0") == 100

    resume_queue(caller, "default", "tests", "code", None)
    assert sum(len(shop.claim(rival, 25)) for rival in rivals) == 100


def test_a_pause_reaches_prepared_claims_as_soon_as_it_is_committed(gateway, shop):
    shop.fill(100)
    for _ in range(8):  # past the point where a generic plan is chosen
        assert len(shop.claim(gateway, 5)) == 5
    pause_queue(CallerGateway(), "default", "tests", "code", None)
    assert shop.claim(gateway, 5) == []


@pytest.mark.parametrize("limit", [1, 5])
@pytest.mark.parametrize("planner", ["as set by the broker", "nested loops forced"])
def test_rivals_never_get_more_than_they_asked_nor_one_job_twice(rivals, shop, limit, planner):
    """B041: a subquery with a limit that is run again for every outer row hands out more."""
    shop.rows.run("analyze pgbroker.job")  # of the empty table: stale from the first row on
    shop.fill(2_000)
    if planner == "nested loops forced":
        for each in rivals:
            for setting in ("hashjoin = off", "material = off", "mergejoin = off", "seqscan = on", "sort = on"):
                each.connection.execute(f"set enable_{setting}")

    def claim_many(each):
        return [shop.claim(each, limit) for _ in range(60)]

    with ThreadPoolExecutor(len(rivals)) as pool:
        batches = [batch for claims in pool.map(claim_many, rivals) for batch in claims]

    assert max(len(batch) for batch in batches) == limit
    ids = [claim.id for batch in batches for claim in batch]
    assert len(ids) == len(set(ids)) == 240 * limit
    assert shop.rows.one("select count(*) from pgbroker.job where state = 1 and attempt = 1") == len(ids)
    assert shop.rows.one("select count(*) from pgbroker.job where attempt > 1") == 0


def test_a_claim_waits_for_nobody_and_leaves_locked_rows_to_their_holder(gateway, rival, shop):
    held, free = shop.job(due_in=-20), shop.job(due_in=-10)
    gateway.connection.execute("set lock_timeout = '100ms'")
    with rival.transaction():
        assert [claim.id for claim in shop.claim(rival, 1)] == [held]
        assert [claim.id for claim in shop.claim(gateway)] == [free]


def test_a_claim_that_is_rolled_back_leaves_the_job_as_it_was(gateway, rival, shop):
    job_id = shop.job()
    before = shop.live(job_id)
    gateway.connection.execute("begin")
    [first] = shop.claim(gateway)
    gateway.connection.execute("rollback")

    assert shop.live(job_id) == before
    [second] = shop.claim(rival)
    assert (second.id, second.attempt) == (job_id, 1)
    assert second.lease_token > first.lease_token
