"""A stale token changes nothing, whatever is written with it; and a locked row is busy, not lost."""

import pytest

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.reclaim import reclaim_jobs
from django_pgbroker.store.renew import renew_leases
from tests.store.jobs import OUTCOMES, completed, verdict

FROM_HERE = [
    pytest.param("claimed again by another", id="claimed-again"),
    pytest.param("pending again", id="pending-again"),
    pytest.param("completed by another", id="completed-elsewhere"),
    pytest.param("gone", id="gone"),
]


def lose(shop, gateway, rival, fate):
    """A claim of ``gateway`` that has lost its lease; what happened to the job meanwhile."""
    claim = shop.claim_one(gateway, max_attempts=5)
    shop.lapse(claim)
    [reclaimed] = reclaim_jobs(rival, 10)
    assert reclaimed.id == claim.id
    shop.rows.run("update pgbroker.job set state = 0, available_at = now()")
    if fate in {"claimed again by another", "completed by another"}:
        [second] = shop.claim(rival, worker_id=2)
        if fate == "completed by another":
            assert not any(acknowledge_jobs(rival, [completed(second, result='"theirs"')]))
    if fate == "gone":
        shop.rows.run("delete from pgbroker.job")
        shop.rows.run("delete from pgbroker.job_payload")
    return claim


@pytest.mark.parametrize("fate", FROM_HERE)
def test_no_verdict_with_a_stale_token_changes_anything(gateway, rival, shop, fate):
    claim = lose(shop, gateway, rival, fate)
    before = shop.everything()
    for outcome, next_state in OUTCOMES:
        report = acknowledge_jobs(gateway, [verdict(claim, outcome, next_state, result='"mine"')])
        assert report == (frozenset(), {claim.id})
    assert shop.everything() == before


@pytest.mark.parametrize("fate", FROM_HERE)
def test_no_renewal_with_a_stale_token_changes_anything(gateway, rival, shop, fate):
    claim = lose(shop, gateway, rival, fate)
    before = shop.everything()
    assert renew_leases(gateway, [claim], {claim.id}, 600) == (frozenset(), {claim.id}, frozenset())
    assert shop.everything() == before


def test_the_stale_ones_of_a_batch_do_not_cost_the_others_anything(gateway, rival, shop):
    lost = lose(shop, gateway, rival, "claimed again by another")
    shop.fill(3)
    kept = shop.claim(gateway, 3)

    assert acknowledge_jobs(gateway, [completed(each) for each in (lost, *kept)]) == (frozenset(), {lost.id})

    assert [shop.rows.state_of(each.id) for each in kept] == [JobState.COMPLETED] * 3
    assert shop.rows.state_of(lost.id) is JobState.RUNNING


def test_a_verdict_counts_once_however_often_it_is_sent(gateway, rival, shop):
    claim = shop.claim_one(gateway)
    assert not any(acknowledge_jobs(gateway, [completed(claim)]))
    before = shop.everything()
    assert acknowledge_jobs(gateway, [completed(claim)]).stale == {claim.id}
    assert acknowledge_jobs(rival, [verdict(claim, Outcome.FAILED, JobState.DEAD)]).stale == {claim.id}
    assert shop.everything() == before


def test_a_retry_counts_once_although_the_job_is_still_live(gateway, shop):
    claim = shop.claim_one(gateway)
    retry = verdict(claim, Outcome.FAILED, JobState.SCHEDULED)
    assert not any(acknowledge_jobs(gateway, [retry]))
    before = shop.everything()
    assert acknowledge_jobs(gateway, [retry]).stale == {claim.id}
    assert shop.everything() == before


def test_the_token_of_another_job_is_as_stale_as_an_old_one(gateway, shop):
    shop.fill(2)
    first, second = shop.claim(gateway)
    swapped = [
        completed(first)._replace(lease_token=second.lease_token),
        completed(second)._replace(lease_token=first.lease_token),
    ]
    before = shop.everything()
    assert acknowledge_jobs(gateway, swapped).stale == {first.id, second.id}
    assert shop.everything() == before


def test_a_row_that_a_renewal_holds_is_busy_and_can_be_acknowledged_next_time(gateway, rival, shop):
    shop.fill(2)
    held, free = shop.claim(gateway)
    with rival.transaction():
        assert not any(renew_leases(rival, [held], (), 60))
        report = acknowledge_jobs(gateway, [completed(held), completed(free)])
        assert report == ({held.id}, frozenset())
    assert shop.rows.state_of(free.id) is JobState.COMPLETED
    assert not any(acknowledge_jobs(gateway, [completed(held)]))
    assert shop.rows.state_of(held.id) is JobState.COMPLETED


def test_a_row_that_an_acknowledge_holds_is_busy_for_the_renewal_and_the_others_are_renewed(gateway, rival, shop):
    shop.fill(2)
    held, free = shop.claim(gateway)
    shop.lapse(held, free)
    with rival.transaction():
        assert not any(acknowledge_jobs(rival, [completed(held)]))
        assert renew_leases(gateway, [held, free], {free.id}, 600) == ({held.id}, frozenset(), frozenset())
    assert shop.rows.one("select lease_expires_at > now() + interval '590 s' from pgbroker.job where id = %s", free.id)
    assert renew_leases(gateway, [held], (), 600).stale == {held.id}


def test_a_producer_that_hangs_an_edge_on_a_job_makes_it_busy_and_nobody_waits(gateway, rival, shop):
    claim = shop.claim_one(gateway)
    gateway.connection.execute("set lock_timeout = '100ms'")
    with rival.transaction():
        rival.connection.execute("select from pgbroker.job where id = %s for key share", [claim.id])
        assert acknowledge_jobs(gateway, [completed(claim)]).busy == {claim.id}
    assert not any(acknowledge_jobs(gateway, [completed(claim)]))


def test_a_renewal_marks_what_has_begun_and_leaves_the_mark_of_the_first_time(gateway, shop):
    shop.fill(2)
    begun, waiting = shop.claim(gateway, begin=0)
    assert not any(renew_leases(gateway, [waiting, begun], {begun.id}, 600))
    first = shop.live(begun.id)["started_at"]
    assert first is not None
    assert shop.live(waiting.id)["started_at"] is None
    renew_leases(gateway, [begun], {begun.id}, 600)
    assert shop.live(begun.id)["started_at"] == first
