"""Handlers in child processes that must end: by word, by signal, by the death of their child."""

import json
import time

import pytest

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.stops import Stop, StopKind
from tests.maintenance.waiting import wait_until
from tests.worker import child_jobs
from tests.worker.child_trials import CANCELLED, DRAINING, TIMED_OUT, make_trial, trial
from tests.worker.claims import make_claim

__all__ = ["make_trial", "trial"]


@pytest.mark.parametrize("how", list(child_jobs.BUSY))
@pytest.mark.parametrize("stop", [CANCELLED, TIMED_OUT], ids=["cancelled", "timed out"])
def test_a_busy_handler_ends_at_the_first_call_and_its_child_goes_on(trial, rows, how, stop):
    trial.give("busy", 1, path=str(trial.path), how=how)
    trial.wait_until_begun(1)
    sleeping = "select count(*) from pg_stat_activity where query = 'select pg_sleep(60)'"
    wait_until(lambda: how != "sql" or rows.one(sleeping), "the server sleeps")
    pids, began = trial.pids(), time.monotonic()

    trial.stop(1, stop)

    [verdict] = trial.take()
    assert verdict.outcome is (Outcome.CANCELLED if stop is CANCELLED else Outcome.TIMED_OUT)
    assert verdict.reason == stop.reason
    assert time.monotonic() - began < 3
    assert trial.noted("left") == {1: 1}, "finally has run"
    wait_until(
        lambda: not rows.one("select count(*) from pg_stat_activity where query = 'select pg_sleep(60)'"),
        "none is left",
    )
    trial.stops.clear()
    assert json.loads(trial.run("where").result)["database"]
    assert trial.pids() == pids


def test_a_call_for_one_job_does_not_reach_another(trial):
    trial.give("nothing", 1)
    trial.take()
    trial.give("polite", 2, path=str(trial.path))
    trial.wait_until_begun(2)

    trial.pool._children[0].interrupt(10, CANCELLED)
    trial.stops[20] = DRAINING

    [verdict] = trial.take()
    assert (verdict.job_id, verdict.outcome) == (2, Outcome.INTERRUPTED)


@pytest.mark.parametrize("name", ["swallow", "hash"])
def test_a_handler_that_does_not_end_is_given_up_with_its_child_and_others_lose_nothing(trial, name, rows):
    trial.give("nothing", *range(100, 300))
    trial.take(200)
    trial.give(name, 1, path=str(trial.path))
    trial.give("pid", 2, 3)
    trial.wait_until_begun(1)
    pids = trial.pids()
    trial.stop(1, TIMED_OUT)
    trial.stop(1, TIMED_OUT, is_last_call=True)

    assert trial.pool.abandon(10)

    assert not trial.pool.abandon(10), "once"
    others = trial.take(2)
    assert sorted(verdict.job_id for verdict in others) == [2, 3]
    assert {verdict.outcome for verdict in others} == {Outcome.COMPLETED}
    assert trial.pool.hung_count == 0
    assert trial.pids() != pids
    assert trial.noted("done") == {}


def test_a_handler_is_told_of_a_stop_within_a_moment_without_any_call(trial):
    trial.give("polite", 1, path=str(trial.path))
    trial.wait_until_begun(1)
    trial.stops[10] = DRAINING

    [verdict] = trial.take()

    assert (verdict.outcome, verdict.next_state, verdict.reason) == (
        Outcome.INTERRUPTED, JobState.PENDING, DRAINING.reason,
    )  # fmt: skip
    assert trial.noted("told") == {1: 1}


def test_a_handler_shows_its_progress_across_the_processes(trial):
    trial.give("beating", 1, path=str(trial.path), beats=60)
    trial.wait_until_begun(1)
    claim = make_claim(1)
    wait_until(lambda: trial.heartbeats._watched, "it is watched")
    began = time.monotonic()
    wait_until(lambda: trial.heartbeats.leave_out_stalled([claim]) == [], "it is silent")
    assert time.monotonic() - began > 2.9, "it beat for three seconds"

    trial.stops[10] = Stop(StopKind.LOST, "no heartbeat() came in time")

    assert trial.take()[0].outcome is Outcome.COMPLETED
    assert not trial.heartbeats._watched
    assert trial.noted("told") == {1: 1}


def test_closing_ends_children_in_the_middle_of_a_handler(make_trial):
    trial = make_trial(2)
    trial.give("swallow", 1, path=str(trial.path))
    trial.wait_until_begun(1)
    children = list(trial.pool._children)
    began = time.monotonic()

    trial.pool.close(4.0)

    assert sorted(child.process.poll() for child in children) == [-9, 0]
    assert time.monotonic() - began < 4
