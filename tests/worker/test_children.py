"""The child processes that run handlers: what they are told, how they die, and that nothing else is lost by it."""

import json
import os
import time
from collections import Counter
from queue import SimpleQueue

import pytest

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.domain.verdicts import Verdict
from django_pgbroker.registry import registry
from django_pgbroker.worker.children_brief import write_brief
from django_pgbroker.worker.executor import Directory
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.pools.children import ChildPool
from tests.maintenance.waiting import wait_until
from tests.worker import child_jobs
from tests.worker.claims import make_claim

CANCELLED = Stop(StopKind.CANCELLED, "cancelled while it ran")
TIMED_OUT = Stop(StopKind.TIMED_OUT, "longer than its time-out")
DRAINING = Stop(StopKind.DRAINING, "the worker had to stop before the job was done")

NAMES = [job_type.name for job_type in registry.all() if job_type.handler.__module__ == child_jobs.__name__]
IDS = {name.removeprefix("children."): number for number, name in enumerate(NAMES, 1)}


def make_completed(number, run_microseconds):
    return Verdict(number, number * 10, Outcome.COMPLETED, JobState.COMPLETED, run_microseconds=run_microseconds)


class Trial:
    """A pool, the stops that its worker would tell, and a file in which handlers write what they do."""

    def __init__(self, path, capacity, **brief):
        self.path = path
        self.stops = {}
        self.heartbeats = HandlerHeartbeats()
        self.delivered = SimpleQueue()
        directory = Directory(
            {IDS[name.removeprefix("children.")]: registry.get(name) for name in NAMES}, {1: "default"}, {1: "acme"}
        )
        self.pool = ChildPool(
            capacity,
            write_brief(directory, get_settings())._replace(**brief),
            directory,
            self.heartbeats,
            find_stop=self.stops.get,
            may_begin=lambda claim: claim.id != 66_666,
            now=time.time,
            deliver=self.delivered.put,
        )
        self.pool.start()
        if "settings_module" not in brief:
            wait_until(lambda: len(self.pids()) == capacity and all(self.ready()), "all are ready", seconds=60)

    def ready(self):
        return [child.is_ready for child in self.pool._children]

    def give(self, name, *numbers, columns=None, **arguments):
        claims = [
            make_claim(number, arguments, **(columns or {}))._replace(job_type_id=IDS[name]) for number in numbers
        ]
        self.pool.give(claims)

    def take(self, count=1):
        return [self.delivered.get(timeout=20) for _ in range(count)]

    def run(self, name, **arguments):
        self.give(name, 1, **arguments)
        return self.take()[0]

    def noted(self, word="begun"):
        """How often each job has written this."""
        if not self.path.exists():
            return Counter()
        lines = [line.split() for line in self.path.read_text().splitlines()]
        return Counter(int(number) for number, said in lines if said == word)

    def wait_until_begun(self, *numbers):
        wait_until(lambda: set(numbers) <= set(self.noted()), f"{numbers} have begun")

    def stop(self, number, stop, *, is_last_call=False):
        self.stops[number * 10] = stop
        self.pool.interrupt(number * 10, stop, is_last_call=is_last_call)

    def pids(self):
        return [child.process.pid for child in self.pool._children]


@pytest.fixture
def make_trial(broker_database, tmp_path):
    made = []

    def make_trial(capacity=1, **brief):
        made.append(Trial(tmp_path / "notes", capacity, **brief))
        return made[-1]

    yield make_trial
    for trial in made:
        children = list(trial.pool._children)
        trial.pool.close(10.0)
        assert all(child.process.poll() is not None for child in children), "no child is left"
        assert trial.delivered.empty(), "a verdict too many"


@pytest.fixture
def trial(make_trial):
    return make_trial()


# -------------------------------------------------------------------------------------------- ordinary jobs


def test_a_child_is_another_process_with_the_same_database_and_runs_handlers_in_its_main_thread(trial, rows):
    trial.give("where", 1, columns={"timeout_seconds": 5})
    [verdict] = trial.take()

    told = json.loads(verdict.result)
    assert told == {
        "pid": trial.pids()[0],
        "is_main_thread": True,
        "database": rows.one("select current_database()"),
        "seen": [1, "children.where", "default", "acme", 1],
        "python_path": os.environ.get("PYTHONPATH"),
        "has_deadline": True,
    }
    assert told["pid"] != os.getpid()
    assert verdict.outcome is Outcome.COMPLETED
    assert verdict.run_microseconds > 0


def test_results_and_errors_come_back_as_from_a_thread(trial):
    assert trial.run("answer", value={"of": ["any", "kind"]}).result == '{"of":["any","kind"]}'
    failed = trial.run("fail")
    assert (failed.outcome, failed.error.error_class, failed.error.message) == (
        Outcome.FAILED, "builtins.ValueError", "bad",
    )  # fmt: skip
    assert "child_jobs.py" in failed.error.traceback
    assert (
        trial.run("nothing")
        == (1, 10, Outcome.COMPLETED, JobState.COMPLETED, 0.0, pytest.approx(0, abs=1e6)) + (None,) * 3
    )
    unstorable = trial.run("answer", value="x" * 200_000)
    assert (unstorable.outcome, unstorable.reason[:18]) == (Outcome.COMPLETED, "result not stored:")
    opened = trial.run("open")
    assert opened.error.error_class.endswith("OpenTransaction")


def test_thousands_of_jobs_are_shared_by_all_children_and_each_is_run_once(make_trial):
    trial = make_trial(3)
    trial.give("pid", *range(1, 3001))

    verdicts = trial.take(3000)

    assert sorted(verdict.job_id for verdict in verdicts) == list(range(1, 3001))
    assert {verdict.outcome for verdict in verdicts} == {Outcome.COMPLETED}, [v for v in verdicts if v.outcome != 1]
    assert {int(verdict.result) for verdict in verdicts} == set(trial.pids())
    wait_until(lambda: trial.pool.backlog_size == 0 and not trial.pool.running_ids(), "nothing waits or runs")


def test_arguments_of_megabytes_pass(make_trial):
    trial = make_trial(2)
    text = "x" * 1_000_000
    for number in range(1, 11):
        trial.give("answer", number, value=text)

    assert {verdict.outcome for verdict in trial.take(10)} == {Outcome.COMPLETED}


def test_a_job_that_may_not_begin_is_released(trial):
    trial.give("nothing", 66_666)

    assert trial.take()[0].outcome is Outcome.RELEASED


def test_fast_jobs_behind_a_slow_one_go_to_another_child(make_trial, tmp_path):
    trial = make_trial(2)
    trial.give("nothing", *range(100, 400))
    trial.take(300)
    gate = tmp_path / "gate"
    trial.give("slow", 1, path=str(trial.path), gate=str(gate))
    trial.give("nothing", *range(2, 60))
    assert sorted(verdict.job_id for verdict in trial.take(58)) == list(range(2, 60)), "all but the slow one end"
    assert trial.pool.running_ids() == {1}

    gate.touch()

    assert trial.take()[0].job_id == 1


def test_what_has_not_begun_comes_back_from_the_pool_and_from_the_child(trial, tmp_path):
    trial.give("nothing", *range(100, 400))
    trial.take(300)
    gate = tmp_path / "gate"
    trial.give("slow", *range(1, 101), path=str(trial.path), gate=str(gate))
    trial.wait_until_begun(1)
    assert trial.pool.backlog_size == 99

    back = {claim.id for claim in trial.pool.take_back()}
    released = trial.take(99 - len(back))

    assert released, "some were in the child"
    assert {verdict.outcome for verdict in released} == {Outcome.RELEASED}
    assert back | {verdict.job_id for verdict in released} == set(range(2, 101))
    gate.touch()
    assert [verdict.job_id for verdict in trial.take()] == [1]
    assert trial.noted() == {1: 1}


# -------------------------------------------------------------------------------------------- deaths


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("kill", "by signal 9 (SIGKILL)"),
        ("exit", "with status 0"),
        ("abort", "by signal 6 (SIGABRT)"),
        ("segfault", "by signal 11 (SIGSEGV)"),
    ],
)
def test_a_child_that_dies_costs_its_own_job_an_attempt_and_no_other(make_trial, caplog, how, cause):
    trial = make_trial(2)
    trial.give("nothing", *range(1000, 1200))
    trial.take(200)
    numbers = list(range(1, 101))
    for number in numbers:
        trial.give("end", number, path=str(trial.path), how=how if number == 50 else "not")

    verdicts = {verdict.job_id: verdict for verdict in trial.take(100)}

    lost = verdicts.pop(50)
    assert (lost.outcome, lost.next_state, lost.reason) == (
        Outcome.LOST, JobState.PENDING, f"its child process ended {cause}",
    )  # fmt: skip
    assert {verdict.outcome for verdict in verdicts.values()} == {Outcome.COMPLETED}
    assert trial.noted() == dict.fromkeys(numbers, 1), "each began once"
    assert trial.noted("done").keys() == set(numbers) - {50}
    wait_until(lambda: "child.died" in caplog.text, "it is told")
    assert "job=50" in caplog.text
    trial.give("end", 50, path=str(trial.path), how=how, columns={"attempt": 2})
    assert trial.take()[0].outcome is Outcome.COMPLETED


def test_a_job_without_attempts_left_is_dead_with_its_child(trial):
    trial.give("end", 1, path=str(trial.path), how="kill", columns={"max_attempts": 1})

    assert trial.take()[0].next_state is JobState.DEAD


def test_an_idle_child_that_is_killed_is_replaced_and_costs_nothing(trial, caplog):
    [first] = trial.pids()
    os.kill(first, 9)
    wait_until(lambda: trial.pids() not in ([], [first]), "another one is there")

    assert int(trial.run("pid").result) != first
    assert "child.died" in caplog.text


def test_a_dead_child_is_noticed_although_a_fork_of_its_handler_lives_on(trial):
    verdict = trial.run("leave_fork")

    assert (verdict.outcome, verdict.reason) == (Outcome.LOST, "its child process ended by signal 9 (SIGKILL)")
    assert trial.run("nothing").outcome is Outcome.COMPLETED


def test_a_handler_that_forks_and_uses_the_orm_keeps_its_connection(trial):
    backends = {trial.run("fork").result for _ in range(20)}

    assert len(backends) == 1
    assert None not in backends


def test_memory_beyond_the_limit_fails_the_job_and_replaces_the_child(make_trial, caplog):
    trial = make_trial(memory_limit_mb=300)
    assert trial.run("hungry", megabytes=20).outcome is Outcome.COMPLETED
    [first] = trial.pids()

    verdict = trial.run("hungry", megabytes=600)

    assert (verdict.outcome, verdict.error.error_class) == (Outcome.FAILED, "builtins.MemoryError")
    wait_until(lambda: trial.pids() not in ([], [first]), "another one is there")
    assert trial.run("nothing").outcome is Outcome.COMPLETED
    assert "child.died" not in caplog.text


def test_a_child_is_replaced_after_its_most_jobs_and_each_verdict_arrives(make_trial, caplog):
    trial = make_trial(2, max_jobs=10)
    trial.give("pid", *range(1, 101))

    verdicts = trial.take(100)

    assert {verdict.outcome for verdict in verdicts} == {Outcome.COMPLETED}
    most = Counter(verdict.result for verdict in verdicts)
    assert max(most.values()) == 10
    assert len(most) >= 10
    assert "child.died" not in caplog.text


def test_children_that_cannot_start_are_told_of_and_tried_again_ever_more_slowly(make_trial, caplog):
    trial = make_trial(1, settings_module="tests.no_such_settings")
    trial.give("nothing", 1, 2)
    wait_until(lambda: caplog.text.count("child.failed_to_start") >= 2, "it is tried again", seconds=30)

    assert "No module named 'tests.no_such_settings'" in caplog.text
    assert len(trial.pool.take_back()) == 2, "nothing has begun"
    assert trial.pool.backlog_size == 0


# -------------------------------------------------------------------------------------------- stops


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

    assert [child.process.poll() for child in children] == [0, 0]
    assert time.monotonic() - began < 4
