"""Two connections at one job: the reclaimer and the owner, the producer of an edge and the acknowledge."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from django_pgbroker.domain.records import LapsedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verdicts import judge_loss
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.dependants import read_woken_queues, send_release_dependants
from django_pgbroker.store.expire import expire_jobs
from django_pgbroker.store.promote import promote_jobs
from django_pgbroker.store.reclaim import reclaim_jobs
from django_pgbroker.store.renew import renew_leases
from tests.maintenance.waiting import wait_until
from tests.store.jobs import completed, verdict


def find_lapsed(gateway):
    return [judge_loss(LapsedJob._make(row), 5.0) for row in gateway.fetch("find_lapsed_jobs", {"batch": 10})]


def test_a_job_that_is_completed_between_the_sweep_and_its_update_stays_completed(gateway, rival, shop):
    """B039: the rescuer listed it, then its worker finished."""
    claim = shop.claim_one(rival)
    shop.lapse(claim)
    found = find_lapsed(gateway)
    assert [each.job_id for each in found] == [claim.id]

    assert not any(acknowledge_jobs(rival, [completed(claim, result='"done"')]))
    before = shop.everything()

    assert acknowledge_jobs(gateway, found, lapsed=True).stale == {claim.id}
    assert shop.everything() == before
    assert shop.archived(claim.id)["deaths"] == 0


def test_a_job_that_is_completed_while_the_update_of_the_sweep_runs_stays_completed(gateway, rival, shop, gate):
    """B039 within one statement: its snapshot still shows the job running and lapsed."""
    claim = shop.claim_one(rival)
    shop.lapse(claim)
    found = find_lapsed(rival)
    with gate.held(gateway, lambda: acknowledge_jobs(gateway, found, lapsed=True)) as answer:
        assert not any(acknowledge_jobs(rival, [completed(claim)]))
        before = shop.everything()
    report = answer.result()
    assert claim.id in report.busy | report.stale  # busy: its snapshot still showed the row; seen again, then stale
    assert shop.everything() == before
    assert [row["outcome"] for row in shop.executions(claim.id)] == [Outcome.COMPLETED]


def test_a_job_that_is_renewed_while_the_update_of_the_sweep_runs_keeps_its_lease(gateway, rival, shop, gate):
    claim = shop.claim_one(rival)
    shop.lapse(claim)
    found = find_lapsed(rival)
    with gate.held(gateway, lambda: acknowledge_jobs(gateway, found, lapsed=True)) as answer:
        assert not any(renew_leases(rival, [claim], {claim.id}, 600))
    assert answer.result().busy == {claim.id}
    assert shop.rows.state_of(claim.id) is JobState.RUNNING
    assert not any(acknowledge_jobs(rival, [completed(claim)]))


def test_a_job_that_is_claimed_again_while_the_update_of_the_sweep_runs_belongs_to_the_second(
    gateway, rival, shop, gate
):
    first = shop.claim_one(rival, max_attempts=5)
    shop.lapse(first)
    found = find_lapsed(rival)
    with gate.held(gateway, lambda: acknowledge_jobs(gateway, found, lapsed=True)) as answer:
        assert not any(acknowledge_jobs(rival, [verdict(first, Outcome.FAILED, JobState.PENDING)]))
        [second] = shop.claim(rival, worker_id=2)
        before = shop.everything()
    report = answer.result()
    assert first.id in report.busy | report.stale
    assert shop.everything() == before
    assert (second.attempt, shop.live(second.id)["worker_id"]) == (2, 2)
    assert not any(acknowledge_jobs(rival, [completed(second)]))


def test_two_reclaimers_take_a_job_back_once(gateway, rival, shop, gate):
    claim = shop.claim_one(rival)
    shop.lapse(claim)
    with gate.held(gateway, lambda: reclaim_jobs(gateway, 10)) as answer:
        assert [each.id for each in reclaim_jobs(rival, 10)] == [claim.id]
    assert answer.result() == []
    assert [row["outcome"] for row in shop.executions(claim.id)] == [Outcome.LOST]
    assert (shop.live(claim.id)["deaths"], shop.live(claim.id)["attempt"]) == (1, 1)


def test_a_worker_that_was_only_slow_finds_its_verdict_refused_after_the_reclaim(gateway, rival, shop):
    claim = shop.claim_one(gateway)
    shop.lapse(claim)
    assert [each.id for each in reclaim_jobs(rival, 10)] == [claim.id]
    before = shop.everything()

    assert acknowledge_jobs(gateway, [completed(claim)]).stale == {claim.id}
    assert renew_leases(gateway, [claim], {claim.id}, 60).stale == {claim.id}
    assert acknowledge_jobs(gateway, [Verdict(*claim[:2], Outcome.RELEASED, JobState.PENDING)]).stale == {claim.id}
    assert shop.everything() == before


def test_a_lapsed_lease_that_nobody_has_taken_back_still_completes(gateway, shop):
    claim = shop.claim_one(gateway)
    shop.lapse(claim)
    assert not any(acknowledge_jobs(gateway, [completed(claim)]))
    assert shop.rows.state_of(claim.id) is JobState.COMPLETED


def test_only_leases_that_are_over_are_taken_back(gateway, rival, shop):
    shop.fill(2)
    kept, lapsed = shop.claim(rival)
    shop.lapse(lapsed)
    as_if_lapsed = [
        judge_loss(LapsedJob(each.id, each.lease_token, 1, 3, True, 1, "default", "shop.send"), 5.0)
        for each in (kept, lapsed)
    ]
    assert acknowledge_jobs(gateway, as_if_lapsed, lapsed=True).busy == {kept.id}
    assert shop.rows.state_of(kept.id) is JobState.RUNNING


# A claim and those who move its job


def test_a_job_is_claimed_while_another_claim_runs_and_handed_out_once(gateway, rival, shop, gate):
    shop.fill(3)
    with gate.held(gateway, lambda: shop.claim(gateway, 3)) as answer:
        taken = shop.claim(rival, 2)
        assert len(taken) == 2
    left = answer.result()
    assert {claim.id for claim in left}.isdisjoint({claim.id for claim in taken})
    assert shop.rows.one("select count(*) from pgbroker.job where state = 1 and attempt = 1") == len(taken) + len(left)


def test_a_job_that_is_expired_while_a_claim_runs_is_not_claimed(gateway, rival, shop, gate):
    job_id = shop.job(expires_in=60)
    with gate.held(gateway, lambda: shop.claim(gateway)) as answer:
        shop.rows.run("update pgbroker.job set expires_at = now() - interval '1 s'")
        assert expire_jobs(rival, 10) == [job_id]
    assert answer.result() == []
    assert shop.rows.state_of(job_id) is JobState.EXPIRED


def test_two_promotions_at_once_move_each_job_once(gateway, rival, shop, gate):
    for _ in range(4):
        shop.job(JobState.SCHEDULED)
    with gate.held(gateway, lambda: promote_jobs(gateway, shop.queue, 10)) as answer:
        assert promote_jobs(rival, shop.queue, 3).moved == 3
    assert answer.result().moved <= 1
    assert promote_jobs(rival, shop.queue, 10).moved + answer.result().moved == 1
    assert shop.rows.one("select count(*) from pgbroker.job where state = 0") == 4


# Edges


def add_child(shop, *parents, gateway=None):
    """A blocked job behind ``parents``, written as a producer of edges does."""
    connection = (gateway or shop.rows.gateway).connection
    child = connection.execute(
        "insert into pgbroker.job ("
        "tenant_id, queue_id, job_type_id, state, created_at, available_at, claim_order, unmet)"
        " select tenant_id, queue_id, job_type_id, 3, now(), now(), now(), %s from pgbroker.job where id = %s"
        " returning id",
        [len(parents), parents[0]],
    ).fetchone()[0]
    for parent in parents:
        connection.execute(
            "insert into pgbroker.job_dependency (job_id, depends_on_job_id) values (%s, %s)", [child, parent]
        )
    return child


def release(gateway, *ids):
    return read_woken_queues(send_release_dependants(gateway, sorted(ids)))


def test_an_edge_that_is_committed_while_the_acknowledge_runs_is_seen_by_the_second_statement(
    gateway, rival, shop, gate
):
    """In one statement with the acknowledge, the child would wait for ever."""
    parent = shop.claim_one(gateway)
    shop.lapse(parent)  # so that the statement asks the clock, where it can be held
    rival.connection.execute("begin")
    rival.connection.execute("select from pgbroker.job where id = %s for key share", [parent.id])
    child = add_child(shop, parent.id, gateway=rival)
    gateway.connection.execute("begin")
    with gate.held(gateway, lambda: acknowledge_jobs(gateway, [completed(parent)], lapsed=True)) as answer:
        rival.connection.execute("commit")
    assert not any(answer.result())
    assert release(gateway, parent.id) == ["default"]
    gateway.connection.execute("commit")

    assert shop.rows.state_of(parent.id) is JobState.COMPLETED
    assert shop.live(child)["unmet"] == 0
    assert shop.rows.state_of(child) is JobState.PENDING


def test_a_child_of_two_parents_waits_for_both_and_counts_each_once(gateway, shop):
    shop.fill(2)
    first, second = shop.claim(gateway)
    child = add_child(shop, first.id, second.id)
    acknowledge_jobs(gateway, [completed(first)])
    assert release(gateway, first.id) == []
    assert release(gateway, first.id) == []
    assert (shop.live(child)["unmet"], shop.rows.state_of(child)) == (1, JobState.BLOCKED)

    acknowledge_jobs(gateway, [completed(second)])
    assert release(gateway, second.id) == ["default"]
    assert release(gateway, first.id, second.id) == []
    assert (shop.live(child)["unmet"], shop.rows.state_of(child)) == (0, JobState.PENDING)


def test_two_parents_that_finish_in_one_batch_lower_the_count_by_two(gateway, shop):
    shop.fill(2)
    claims = shop.claim(gateway)
    child = add_child(shop, *(claim.id for claim in claims))
    acknowledge_jobs(gateway, [completed(claim) for claim in claims])
    release(gateway, *(claim.id for claim in claims))
    assert (shop.live(child)["unmet"], shop.rows.state_of(child)) == (0, JobState.PENDING)


def test_two_parents_that_finish_in_two_transactions_at_once_unblock_their_child(gateway, rival, shop):
    """The second release waits for the first one's lock on the child, and then counts from what that one left."""
    shop.fill(2)
    [first], [second] = shop.claim(gateway, 1), shop.claim(rival, 1, worker_id=2)
    child = add_child(shop, first.id, second.id)
    for connection, parent in ((gateway, first), (rival, second)):
        connection.connection.execute("begin")
        assert not any(acknowledge_jobs(connection, [completed(parent)]))
    assert release(rival, second.id) == []
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(release, gateway, first.id)
        waiting = "select cardinality(pg_blocking_pids(%s::int)) > 0"
        wait_until(
            lambda: shop.rows.one(waiting, gateway.connection.info.backend_pid), "the release waits for the child"
        )
        rival.connection.execute("commit")
        assert late.result(timeout=15) == ["default"]
    gateway.connection.execute("commit")
    assert (shop.live(child)["unmet"], shop.rows.state_of(child)) == (0, JobState.PENDING)


@pytest.mark.parametrize(
    ("outcome", "next_state"),
    [
        (Outcome.FAILED, JobState.DEAD),
        (Outcome.CANCELLED, JobState.CANCELLED),
        (Outcome.FAILED, JobState.SCHEDULED),
        (Outcome.RELEASED, JobState.PENDING),
    ],
)
def test_a_parent_that_did_not_complete_releases_nobody(gateway, shop, outcome, next_state):
    parent = shop.claim_one(gateway)
    child = add_child(shop, parent.id)
    acknowledge_jobs(gateway, [verdict(parent, outcome, next_state)])
    assert release(gateway, parent.id) == []
    assert (shop.live(child)["unmet"], shop.rows.state_of(child)) == (1, JobState.BLOCKED)


def test_a_stale_completion_releases_nobody(gateway, rival, shop):
    parent = shop.claim_one(gateway, max_attempts=5)
    child = add_child(shop, parent.id)
    shop.lapse(parent)
    reclaim_jobs(rival, 10)
    with gateway.transaction():
        assert acknowledge_jobs(gateway, [completed(parent)]).stale == {parent.id}
        assert release(gateway, parent.id) == []
    assert shop.rows.state_of(child) is JobState.BLOCKED


def test_a_child_whose_time_has_not_come_is_scheduled_when_its_parent_completes(gateway, shop):
    parent = shop.claim_one(gateway)
    child = add_child(shop, parent.id)
    shop.rows.run("update pgbroker.job set available_at = now() + interval '1 h' where id = %s", child)
    acknowledge_jobs(gateway, [completed(parent)])
    assert release(gateway, parent.id) == []
    assert shop.rows.state_of(child) is JobState.SCHEDULED
