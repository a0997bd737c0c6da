"""The child processes that run handlers: what they are told, how they die, and that nothing else is lost by it."""

import json
import os
from collections import Counter

import pytest

from django_pgbroker.domain.states import JobState, Outcome
from tests.maintenance.waiting import wait_until
from tests.worker.child_trials import make_trial, trial

__all__ = ["make_trial", "trial"]


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
    assert trial.run("nothing") == (1, 10, Outcome.COMPLETED, JobState.COMPLETED, 0.0, pytest.approx(0, abs=1e6)) + (
        None,
    ) * 3 + (False,)
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


def test_a_child_is_replaced_although_a_thread_of_a_handler_lives_on(make_trial):
    trial = make_trial(1, max_jobs=1)

    first, second = trial.run("leave_thread"), trial.run("leave_thread")

    assert first.outcome is second.outcome is Outcome.COMPLETED
    assert first.result != second.result


def test_children_that_cannot_start_are_told_of_and_tried_again_ever_more_slowly(make_trial, caplog):
    trial = make_trial(1, settings_module="tests.no_such_settings")
    trial.give("nothing", 1, 2)
    wait_until(lambda: caplog.text.count("child.failed_to_start") >= 2, "it is tried again", seconds=30)

    assert "No module named 'tests.no_such_settings'" in caplog.text
    assert len(trial.pool.take_back()) == 2, "nothing has begun"
    assert trial.pool.backlog_size == 0


def test_a_memory_limit_that_leaves_no_room_for_a_job_is_a_start_that_fails(make_trial, caplog):
    trial = make_trial(1, memory_limit_mb=1, settings_module=os.environ["DJANGO_SETTINGS_MODULE"])
    trial.give("nothing", 1)

    wait_until(lambda: "child.failed_to_start" in caplog.text, "it is told")

    assert "PGBROKER['CHILD_MEMORY_LIMIT_MB'] is 1, which a child process fills" in caplog.text
    assert [claim.id for claim in trial.pool.take_back()] == [1]


def test_a_pool_starts_more_children_and_lets_surplus_ones_finish_and_go(make_trial, tmp_path):
    trial = make_trial(1)
    gate = tmp_path / "gate"
    trial.give("slow", 1, 2, 3, 4, path=str(trial.path), gate=str(gate))
    trial.wait_until_begun(1)
    trial.pool.resize(3)
    trial.wait_until_begun(1, 2, 3)
    assert len(trial.pids()) == 3

    trial.pool.resize(1)
    gate.touch()
    verdicts = trial.take(4)
    assert sorted(verdict.job_id for verdict in verdicts) == [1, 2, 3, 4]
    assert {verdict.outcome for verdict in verdicts} == {Outcome.COMPLETED}
    wait_until(lambda: len(trial.pids()) == 1, "two children have gone")
    assert set(trial.noted().values()) == {1}, "each began once"
    assert [verdict.outcome for verdict in [trial.run("nothing")]] == [Outcome.COMPLETED]
