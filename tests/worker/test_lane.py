"""When a queue is looked at next, and from where. Times are made up: a lane has no clock of its own."""

import math

import pytest

from django_pgbroker.domain.records import ClaimedJob, Promotion
from django_pgbroker.store.claim import NO_FLOOR
from django_pgbroker.worker.lane import Lane

POLL_MIN, POLL_MAX = 0.01, 5.0


@pytest.fixture
def lane():
    return Lane("default", 1, 1, POLL_MIN, POLL_MAX)


def claim(number=1, claim_order=1000.0, claim_seconds=0.001, left_behind=0):
    return ClaimedJob(
        number, number, 1, 1, 1, 1, 3, 0, None, 0, claim_order, None, True, 1, "{}", None, None, claim_seconds,
        left_behind,
    )  # fmt: skip


def look(lane, now, found=0, batch=10, promotion=None, **columns):
    """One look at ``now`` that finds so many jobs."""
    made = lane.look(batch, now)
    lane.learn(made, [claim(number, **columns) for number in range(found)], promotion, now)
    return made


def make_dear(lane, claim_seconds=0.02):
    """Three looks in a row that were dear, the last of them at 100.0."""
    for _ in range(3):
        look(lane, 100.0, found=10, claim_order=5000.0, claim_seconds=claim_seconds)


def test_pauses_double_while_nothing_is_found_up_to_the_longest_one(lane):
    now, pauses = 100.0, []
    for _ in range(14):
        look(lane, now, promotion=Promotion(0, None))
        pauses.append(lane.next_look_at - now)
        now = lane.next_look_at
    for step, pause in enumerate(pauses):
        longest = min(POLL_MIN * 2**step, POLL_MAX)
        assert 0.74 * longest <= pause <= 1.26 * longest
    assert len({pause / POLL_MAX for pause in pauses[-4:]}) == 4, "workers that started together drift apart"


def test_a_full_batch_is_followed_by_a_look_at_once(lane):
    look(lane, 100.0, found=10, batch=10)
    assert lane.next_look_at == 100.0


def test_a_batch_that_was_not_full_is_followed_by_the_shortest_pause(lane):
    for _ in range(10):
        look(lane, 100.0)
    look(lane, 100.0, found=3)
    assert lane.next_look_at - 100.0 <= 1.26 * POLL_MIN


def test_a_wake_has_the_queue_looked_at_at_once_and_shortens_the_pauses_again(lane):
    for _ in range(10):
        look(lane, 100.0)
    lane.wake(100.0)
    assert lane.next_look_at <= 100.0
    look(lane, 100.0, promotion=Promotion(0, None))
    assert lane.next_look_at - 100.0 <= 1.26 * POLL_MIN


def test_a_job_that_becomes_due_ends_the_pause(lane):
    for _ in range(12):
        look(lane, 100.0, promotion=Promotion(0, None))
    lane.expect(100.3)
    assert lane.next_look_at == 100.3
    assert lane.look(10, 100.3).promote_floor is not None


def test_the_next_due_job_that_a_promotion_tells_ends_the_pause(lane):
    for _ in range(12):
        look(lane, 100.0, promotion=Promotion(0, 0.25))
    assert lane.next_look_at == pytest.approx(100.25)


def test_due_jobs_are_looked_for_every_second_even_where_none_is_known(lane):
    assert lane.look(10, 100.0).promote_floor is not None
    look(lane, 100.0, promotion=Promotion(0, None))
    assert lane.look(10, 100.5).promote_floor is None
    assert lane.look(10, 101.0).promote_floor is not None


def test_after_a_full_promotion_the_next_look_promotes_again(lane):
    look(lane, 100.0, found=10, batch=10, promotion=Promotion(10, None))
    assert lane.look(10, 100.0).promote_floor is not None


def test_a_cheap_claim_starts_from_the_beginning_every_time(lane):
    look(lane, 100.0, found=10, claim_order=5000.0)
    assert lane.look(10, 100.001).floor == NO_FLOOR


def test_a_claim_that_is_slow_once_or_twice_is_not_dear(lane):
    for now in (100.0, 100.1):
        look(lane, now, found=10, claim_order=5000.0, claim_seconds=0.05)
        assert lane.look(10, now).floor == NO_FLOOR
    look(lane, 100.2, found=10, claim_order=5000.0, claim_seconds=0.05)
    assert lane.look(10, 100.3).floor != NO_FLOOR


def test_while_claims_are_dear_they_start_a_little_below_the_last_one_and_from_the_beginning_once_a_second(lane):
    make_dear(lane)
    assert lane.look(10, 100.1).floor == 4999.75
    assert look(lane, 100.9, found=10, claim_order=5001.0).floor == 4999.75
    assert lane.look(10, 100.95).floor == 5000.75
    assert lane.look(10, 101.0).floor == NO_FLOOR


def heads(lane, times, **columns):
    """The moments at which a look that finds jobs started from the beginning, in a lane that is dear."""
    make_dear(lane)
    return [now for now in times if look(lane, now, found=10, **columns).floor == NO_FLOOR]


def test_where_claims_come_many_times_a_second_fewer_than_one_in_a_hundred_starts_from_the_beginning(lane):
    times = [100 + step / 50 for step in range(1, 1001)]
    found = heads(lane, times, claim_seconds=0.02)
    assert 4 <= len(found) <= 5


def test_however_many_claims_there_are_one_starts_from_the_beginning_every_ten_seconds(lane):
    times = [100 + step / 5 for step in range(1, 151)]
    assert heads(lane, times, claim_seconds=0.02) == [110.0, 120.0, 130.0]


def test_looks_from_the_beginning_take_a_twentieth_of_the_time_at_most(lane):
    times = [100 + step / 2 for step in range(1, 61)]
    assert heads(lane, times, claim_seconds=0.2) == [101.0, 105.0, 109.0, 113.0, 117.0, 121.0, 125.0, 129.0]


def test_a_wake_of_a_lane_that_finds_jobs_all_the_time_does_not_make_its_next_claim_dear(lane):
    make_dear(lane)
    for step in range(1, 100):
        lane.wake(100 + step / 100)
        assert look(lane, 100 + step / 100, found=10).floor != NO_FLOOR
        assert lane.next_look_at <= 100 + step / 100


def test_after_a_look_that_found_only_urgent_jobs_the_next_one_goes_on_with_those(lane):
    make_dear(lane)
    assert look(lane, 101.0, found=10, claim_order=2000.0, claim_seconds=0.02).floor == NO_FLOOR
    assert lane.look(10, 101.1).floor == 1999.75


def test_a_large_batch_is_not_dear_for_being_large(lane):
    for _ in range(3):
        look(lane, 100.0, found=1000, batch=1000, claim_seconds=0.015)
    assert lane.look(10, 100.1).floor == NO_FLOOR


def test_a_look_from_the_beginning_that_is_cheap_again_ends_the_floor(lane):
    make_dear(lane, 0.05)
    assert look(lane, 101.5, found=10, claim_seconds=0.001).floor == NO_FLOOR
    assert lane.look(10, 101.6).floor == NO_FLOOR


@pytest.mark.parametrize("promotion", [None, Promotion(1, None)], ids=["woken", "promoted"])
def test_a_wake_or_a_promotion_has_an_idle_lane_look_from_the_beginning_for_there_may_be_urgent_work(lane, promotion):
    make_dear(lane)
    assert look(lane, 100.1, promotion=promotion).floor != NO_FLOOR
    if promotion is None:
        lane.wake(100.4)
    assert lane.look(10, 100.41).floor == NO_FLOOR


def test_an_idle_lane_that_is_woken_again_and_again_looks_from_the_beginning_for_a_twentieth_of_the_time(lane):
    make_dear(lane)
    dear = 0
    for step in range(1, 101):
        lane.wake(100 + step / 100)
        dear += look(lane, 100 + step / 100).floor == NO_FLOOR
    assert dear == 2


def test_a_bounded_look_that_finds_nothing_does_not_call_the_queue_empty_and_comes_again_within_a_second(lane):
    make_dear(lane, 0.05)
    for step in range(1, 8):
        look(lane, 100.0 + step / 10)
        assert not lane.is_empty
        assert lane.next_look_at <= 101.0
    look(lane, 101.0, promotion=Promotion(0, None))
    assert lane.is_empty


def test_a_look_that_finds_jobs_says_that_the_queue_is_not_empty(lane):
    look(lane, 100.0)
    assert lane.is_empty
    look(lane, 100.1, found=1)
    assert not lane.is_empty


def test_nothing_scheduled_is_no_reason_to_look_again(lane):
    look(lane, 100.0, promotion=Promotion(0, None))
    assert lane._next_due_at == math.inf


def wake_in_vain(lane, times, now=100.0):
    for _ in range(times):
        lane.wake(now)
        look(lane, now)


def pauses_after_a_wake(lane, now=100.0):
    """How long after each of many wakes the lane would look, if every look found nothing more or less."""
    pauses = []
    for _ in range(200):
        lane.next_look_at = now + 5.0
        lane._is_woken = False
        lane.wake(now)
        pauses.append(lane.next_look_at - now)
    return pauses


def test_a_lane_that_is_woken_in_vain_again_and_again_spreads_its_looks_so_that_rivals_do_not_stampede(lane):
    assert set(pauses_after_a_wake(lane)) == {0.0}
    wake_in_vain(lane, 4)
    pauses = pauses_after_a_wake(lane)
    assert 0 <= min(pauses) < 0.002
    assert 0.004 < max(pauses) <= 0.008
    wake_in_vain(lane, 20)
    assert 0.2 < max(pauses_after_a_wake(lane)) <= 0.25


def test_a_wake_that_brings_jobs_shortens_the_spread_until_a_lone_worker_looks_at_once_again(lane):
    wake_in_vain(lane, 20)
    for _ in range(9):
        lane._is_idle = True
        lane.wake(100.0)
        look(lane, 100.0, found=1)
    assert set(pauses_after_a_wake(lane)) == {0.0}


def test_more_wakes_before_the_look_do_not_make_it_sooner(lane):
    wake_in_vain(lane, 20)
    lane.next_look_at = 105.0
    lane.wake(100.0)
    first = lane.next_look_at
    for _ in range(100):
        lane.wake(100.0)
    assert lane.next_look_at == first


def test_a_promotion_starts_a_little_below_the_last_one_and_at_the_beginning_every_ten_seconds(lane):
    assert look(lane, 100.0, promotion=Promotion(3, 0.5, 7000.0)).promote_floor == NO_FLOOR
    assert look(lane, 100.5, promotion=Promotion(2, 0.5, 7001.0)).promote_floor == 6999.0
    assert look(lane, 109.9, promotion=Promotion(0, None)).promote_floor == 7000.0
    assert lane.look(10, 110.9).promote_floor == NO_FLOOR
