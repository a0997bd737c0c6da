"""How many jobs to claim, and how queues share the room."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from django_pgbroker.domain.records import Promotion
from django_pgbroker.worker.fetcher import Fetcher, share_by_weight
from django_pgbroker.worker.lane import Lane
from tests.worker.claims import make_claim

weights = st.lists(st.integers(1, 1000), min_size=1, max_size=8)


def lane(name="default", weight=1):
    return Lane(name, weight, 1, 0.01, 5.0)


def fetcher(*lanes, concurrency=4, prefetch_limit=100, is_strict=False):
    return Fetcher(lanes or [lane()], concurrency, prefetch_limit, is_strict=is_strict)


def batches(made, held=0, now=0.0):
    return {look.lane.name: look.batch for look in made.plan(held, now)}


@given(st.integers(0, 2000), weights)
def test_shares_add_up_to_the_room_and_none_is_negative(room, given_weights):
    shares = share_by_weight(room, given_weights)
    assert sum(shares) == room
    assert len(shares) == len(given_weights)
    assert min(shares) >= 0


@given(st.integers(1, 2000), weights)
def test_a_share_has_at_least_the_whole_part_of_its_due(room, given_weights):
    shares = share_by_weight(room, given_weights)
    for share, weight in zip(shares, given_weights, strict=True):
        assert share >= room * weight // sum(given_weights)


def test_no_room_and_no_queue_share_nothing():
    assert share_by_weight(0, [1, 2]) == [0, 0]
    assert share_by_weight(-3, [1, 2]) == [0, 0]
    assert share_by_weight(5, []) == []


def test_with_room_for_one_job_every_queue_comes_up_about_as_often_as_its_weight_says():
    drawn = Counter(share_by_weight(1, [1, 3]).index(1) for _ in range(4000))
    # 1000 is expected; six standard deviations of 27 are allowed
    assert 836 <= drawn[0] <= 1164


def test_without_a_known_rate_only_the_free_slots_are_filled():
    assert batches(fetcher(concurrency=4)) == {"default": 4}
    assert batches(fetcher(concurrency=4), held=3) == {"default": 1}
    assert batches(fetcher(concurrency=4), held=4) == {}


def test_the_target_is_what_the_slots_finish_in_a_tenth_of_a_second_up_to_the_limit():
    made = fetcher(concurrency=4, prefetch_limit=100)
    made.measure(jobs=500, run_seconds=4)
    assert made.target == 4 + 50
    targets = []
    for _ in range(30):
        made.measure(jobs=100_000, run_seconds=4)
        targets.append(made.target)
    assert targets == sorted(targets)
    assert made.target == 104


def test_waiting_claims_are_too_many_when_the_last_one_would_begin_after_a_second():
    made = fetcher(concurrency=4, prefetch_limit=1000)
    assert not made.is_too_long(4)
    made.measure(jobs=500, run_seconds=4)
    assert not made.is_too_long(500)
    assert made.is_too_long(501)
    made.measure(jobs=4, run_seconds=4000)
    assert not made.is_too_long(4), "as many as there are slots always wait"
    assert made.is_too_long(5)


def test_slow_handlers_get_no_prefetch():
    made = fetcher(concurrency=4)
    for _ in range(30):
        made.measure(jobs=4, run_seconds=4)
    assert made.target == 4


def test_a_rate_that_falls_takes_the_prefetch_away_again():
    made = fetcher(concurrency=4)
    for _ in range(30):
        made.measure(jobs=5000, run_seconds=4)
    assert made.target == 104
    for _ in range(60):
        made.measure(jobs=1, run_seconds=4)
    assert made.target == 4


def test_a_stalled_backlog_forgets_the_rate():
    made = fetcher(concurrency=4)
    made.measure(jobs=5000, run_seconds=4)
    assert made.target > 4
    made.forget_rate()
    assert made.target == 4


def test_a_claim_for_a_few_jobs_waits_while_all_slots_have_work():
    made = fetcher(concurrency=4, prefetch_limit=100)
    for _ in range(30):
        made.measure(jobs=5000, run_seconds=4)
    assert not made.has_room(103)
    assert made.has_room(104 - 26)
    assert made.has_room(3)
    assert not made.has_room(104)


def test_only_queues_that_are_due_share_the_room():
    busy, idle = lane("busy", 1), lane("idle", 1)
    idle.learn(idle.look(4, now=0.0), [], Promotion(0, None), now=0.0)
    assert idle.next_look_at > 0
    assert batches(fetcher(busy, idle), now=0.0) == {"busy": 4}
    assert batches(fetcher(busy, idle), now=60.0) == {"busy": 2, "idle": 2}


def test_the_next_look_is_that_of_the_queue_that_is_due_first():
    first, second = lane("first"), lane("second")
    first.next_look_at, second.next_look_at = 12.0, 10.5
    made = fetcher(first, second)
    assert made.seconds_to_next_look(10.0) == 0.5
    assert made.seconds_to_next_look(11.0) == 0.0


def test_free_slots_are_given_to_the_looks_in_their_order_and_the_rest_is_claimed_ahead():
    made = fetcher(lane("first"), lane("second"), concurrency=4, prefetch_limit=100)
    for _ in range(40):
        made.measure(jobs=100, run_seconds=4)
    assert made.target == 14
    first, second = made.plan(held=1, now=0.0)
    assert (first.begin, second.begin) == (3, 0)
    assert first.batch + second.batch == 13


def test_while_a_job_needs_a_free_slot_nothing_is_claimed_ahead():
    only = lane()
    made = fetcher(only, concurrency=4, prefetch_limit=100)
    for _ in range(30):
        made.measure(jobs=5000, run_seconds=4)
    assert made.plan(held=4, now=0.0)
    only.learn(only.look(100, 0.0, begin=0), [make_claim(left_behind=1)], None, 0.0)
    assert not made.plan(held=4, now=0.0)
    [look] = made.plan(held=3, now=60.0)
    assert look.begin == 1
    only.learn(look, [make_claim(left_behind=0)], None, 60.0)
    assert made.plan(held=4, now=120.0)


def asked(made, jobs, now=0.0, held=0):
    """Take one turn in strict order; ``jobs`` says how many jobs each queue still has, and is lowered."""
    names = []
    for look in made.plan(held, now):
        found = min(look.batch, jobs.get(look.lane.name, 0))
        jobs[look.lane.name] = jobs.get(look.lane.name, 0) - found
        look.lane.learn(look, [make_claim()] * found, Promotion(0, None), now)
        names.append((look.lane.name, look.batch, found))
    return names


def strict(*names, concurrency=4):
    return fetcher(*map(lane, names), concurrency=concurrency, is_strict=True)


def test_in_strict_order_the_first_queue_gets_all_the_room_while_it_has_jobs():
    made, jobs = strict("first", "second"), {"first": 10, "second": 10}
    assert asked(made, jobs) == [("first", 4, 4)]
    assert asked(made, jobs) == [("first", 4, 4)]
    assert asked(made, jobs) == [("first", 4, 2)]
    assert made.seconds_to_next_look(0.0) == 0
    assert asked(made, jobs, held=2) == [("second", 2, 2)]


def test_in_strict_order_an_earlier_queue_is_asked_before_each_look_into_a_later_one():
    made, jobs = strict("first", "second", "third"), {"third": 12}
    [first, *_] = made.lanes
    one_round = [("first", 4, 0), ("second", 4, 0), ("third", 4, 4)]
    assert [asked(made, jobs) for _ in range(3)] == [[each] for each in one_round]
    assert first.next_look_at > 0, "it is not due, and asked all the same"
    assert [asked(made, jobs) for _ in range(3)] == [[each] for each in one_round]
    jobs["first"] = 3
    assert asked(made, jobs) == [("first", 4, 3)]


def test_in_strict_order_a_queue_that_is_woken_or_full_begins_a_new_round():
    made, jobs = strict("first", "second", "third"), {"second": 4, "third": 4}
    assert [asked(made, jobs)[0][0] for _ in range(3)] == ["first", "second", "first"]
    made.lanes[0].wake(0.0)
    assert asked(made, jobs)[0][0] == "first"


def test_in_strict_order_a_wait_for_room_begins_a_new_round():
    made, jobs = strict("first", "second"), {"second": 8}
    assert asked(made, jobs)[0][0] == "first"
    assert asked(made, jobs, held=4) == []
    assert asked(made, jobs)[0][0] == "first"


def test_in_strict_order_nothing_is_asked_while_nothing_is_due():
    made, jobs = strict("first", "second"), {}
    assert [asked(made, jobs)[0][0] for _ in range(2)] == ["first", "second"]
    assert asked(made, jobs) == []
    assert made.seconds_to_next_look(0.0) > 0
