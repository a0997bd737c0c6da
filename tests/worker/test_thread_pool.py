"""The threads that run handlers, and the claims that wait for one."""

import threading
import time
from queue import SimpleQueue

import pytest

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verdicts import Verdict
from django_pgbroker.worker.pools.threads import ThreadPool
from tests.maintenance.waiting import wait_until
from tests.worker.claims import make_claim


def done(claim):
    return Verdict(claim.id, claim.lease_token, Outcome.COMPLETED, JobState.COMPLETED)


class Trial:
    """Slots whose handlers note what they run and wait at a gate if there is one."""

    def __init__(self, concurrency, gate=None):
        self.gate = gate
        self.ran = []
        self.threads = set()
        self.delivered = SimpleQueue()
        self.slots = ThreadPool(concurrency, self.execute, self.delivered.put)
        self.slots.start()

    def execute(self, claim, _region):
        self.ran.append(claim.id)
        self.threads.add(threading.current_thread().name)
        if self.gate:
            self.gate.wait()
        return done(claim)

    def take(self, count):
        return [self.delivered.get(timeout=10).job_id for _ in range(count)]

    def alive(self):
        return [thread for thread in self.slots._threads.values() if thread.is_alive()]


@pytest.fixture
def make_trial():
    made = []

    def make_trial(concurrency, gate=None):
        made.append(Trial(concurrency, gate))
        return made[-1]

    yield make_trial
    for trial in made:
        if trial.gate:
            trial.gate.open()
        trial.slots.close(5.0)


def test_one_slot_runs_claims_in_their_order(make_trial):
    trial = make_trial(1)
    trial.slots.give([make_claim(number) for number in (5, 3, 9, 1)])
    assert trial.take(4) == [5, 3, 9, 1]


def test_all_slots_work_at_once(make_trial, gate):
    trial = make_trial(4, gate)
    trial.slots.give([make_claim(number) for number in range(4)])
    gate.wait_until_arrived(4)
    assert trial.slots.running_ids() == {0, 1, 2, 3}
    assert len(trial.threads) == 4


def test_a_verdict_is_delivered_for_every_claim_of_many_batches(make_trial):
    trial = make_trial(16)
    for start in range(0, 3000, 30):
        trial.slots.give([make_claim(number) for number in range(start, start + 30)])
    assert sorted(trial.take(3000)) == list(range(3000))
    assert trial.slots.backlog_size == 0
    wait_until(lambda: not trial.slots.running_ids(), "nothing runs")


def test_what_waits_can_be_taken_back_and_what_runs_cannot(make_trial, gate):
    trial = make_trial(2, gate)
    trial.slots.give([make_claim(number) for number in range(10)])
    gate.wait_until_arrived(2)
    assert trial.slots.backlog_size == 8

    back = trial.slots.take_back()

    assert sorted(claim.id for claim in back) == list(range(2, 10))
    assert trial.slots.running_ids() == {0, 1}
    gate.open()
    assert sorted(trial.take(2)) == [0, 1]
    assert sorted(trial.ran) == [0, 1]


def test_a_claim_is_either_taken_back_or_run_never_both_and_never_neither(make_trial):
    trial = make_trial(8)
    back = []
    for start in range(0, 4000, 40):
        trial.slots.give([make_claim(number) for number in range(start, start + 40)])
        back += [claim.id for claim in trial.slots.take_back()]
    ran = trial.take(4000 - len(back))
    assert sorted(ran + back) == list(range(4000))


def test_slots_go_on_after_all_was_taken_back(make_trial):
    trial = make_trial(3)
    trial.slots.give([make_claim(number) for number in range(50)])
    trial.take(50 - len(trial.slots.take_back()))
    trial.slots.give([make_claim(99)])
    assert trial.take(1) == [99]


def test_a_closed_set_of_idle_slots_has_no_thread_left(make_trial):
    trial = make_trial(5)
    trial.slots.give([make_claim(1)])
    trial.take(1)
    trial.slots.close(5.0)
    assert trial.alive() == []


def test_closing_gives_up_on_handlers_that_do_not_end_after_the_time_of_one_wait(make_trial, gate):
    trial = make_trial(6, gate)
    trial.slots.give([make_claim(number) for number in range(6)])
    gate.wait_until_arrived(6)
    began = time.monotonic()
    trial.slots.close(0.2)
    assert time.monotonic() - began < 0.9, "six stuck handlers must not hold up the end six times"
    assert len(trial.alive()) == 6


def test_a_thread_that_was_given_up_on_does_not_keep_the_process(make_trial):
    assert all(thread.daemon for thread in make_trial(3).slots._threads.values())


def test_more_slots_take_what_waits_and_fewer_let_what_runs_finish(make_trial, gate):
    trial = make_trial(2, gate)
    trial.slots.give([make_claim(number) for number in range(6)])
    gate.wait_until_arrived(2)
    trial.slots.resize(4)
    gate.wait_until_arrived(2)
    assert (trial.slots.capacity, trial.slots.running_ids()) == (4, {0, 1, 2, 3})

    trial.slots.resize(1)
    assert trial.slots.running_ids() == {0, 1, 2, 3}
    gate.open()
    assert sorted(trial.take(6)) == list(range(6))
    wait_until(lambda: len(trial.alive()) == 1, "three slots have gone")


def test_idle_slots_go_at_once_and_the_one_that_is_left_misses_nothing(make_trial):
    trial = make_trial(8)
    trial.slots.resize(1)
    wait_until(lambda: len(trial.alive()) == 1, "seven slots have gone")
    for number in range(50):
        trial.slots.give([make_claim(number)])
        assert trial.take(1) == [number]


def test_a_pool_that_changes_its_size_all_the_time_runs_every_claim_once(make_trial):
    trial = make_trial(1)
    for number in range(2000):
        trial.slots.resize(1 + number * 7 % 5)
        trial.slots.give([make_claim(number)])
        if number % 50 == 0:
            wait_until(lambda number=number: len(trial.ran) == number + 1, "all are run before the next come")
    assert sorted(trial.take(2000)) == list(range(2000))
    trial.slots.resize(3)
    wait_until(lambda: len(trial.alive()) == 3, "as many as were asked for last")


def test_a_slot_that_hangs_while_the_pool_shrinks_leaves_as_many_as_were_asked_for(make_trial, gate):
    trial = make_trial(3, gate)
    trial.slots.give([make_claim(number) for number in range(3)])
    gate.wait_until_arrived(3)
    trial.slots.resize(1)
    for number in range(3):
        assert trial.slots.abandon(make_claim(number).lease_token)
    wait_until(lambda: len(trial.alive()) == 1, "of three fresh slots two have gone")
    gate.open()
    trial.slots.give([make_claim(7)])
    assert trial.take(1) == [7]
