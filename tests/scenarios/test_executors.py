"""Whole workers with threads, an event loop and child processes: deaths, time-outs, cancels and the drain."""

import os
import signal
from pathlib import Path

import pytest

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs

#: A queue for each kind; what is async runs on the loop in the first.
QUEUES = {"threads": {"executor": "thread"}, "loop": {}, "children": {"executor": "process"}}
SETTINGS = {"QUEUES": QUEUES, "DEFAULT_QUEUE": "loop", "STOP_GRACE_SECONDS": 2}


@pytest.fixture
def start_worker(start, settings):
    settings.PGBROKER = SETTINGS

    def start_worker(queues, *arguments, **more):
        return start(
            "--queues", queues, "--concurrency", "2", "--settings", "tests.scenarios.executor_settings", *arguments,
            settings={**SETTINGS, **more},
        )  # fmt: skip

    return start_worker


def children_of(worker):
    """The process ids of its child processes."""
    tasks = Path(f"/proc/{worker.pid}/task").iterdir()
    return sorted({int(pid) for task in tasks for pid in (task / "children").read_text().split()})


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def outcomes(handle):
    found = Execution.objects.filter(job_id=handle.id).order_by("lease_token")
    return [Outcome(execution.outcome) for execution in found]


def test_a_child_that_is_killed_costs_the_job_in_it_an_attempt_and_a_hundred_others_nothing(
    start_worker, story, executor_jobs
):
    worker = start_worker("children", "--child-processes", "2")
    on_children = {"queue": "children"}
    before = [story.enqueue(jobs.quick.using(**on_children)) for _ in range(50)]
    dying = story.enqueue(executor_jobs.die_once.using(**on_children))
    after = [story.enqueue(jobs.quick.using(**on_children)) for _ in range(50)]

    wait_until(lambda: all(handle.status().is_finished for handle in (*before, dying, *after)), "all end", seconds=60)

    assert outcomes(dying) == [Outcome.LOST, Outcome.COMPLETED]
    done = ArchivedJob.objects.get(pk=dying.id)
    assert (done.attempt, done.deaths) == (2, 1)
    lost = Execution.objects.get(job_id=dying.id, outcome=Outcome.LOST)
    assert lost.reason == "its child process ended by signal 9 (SIGKILL)"
    for handle in (*before, *after):
        assert outcomes(handle) == [Outcome.COMPLETED]
    assert story.count("done") == 101
    assert worker.says("child.died"), "and the worker itself lives on"
    assert worker.lives


def test_a_child_that_is_killed_from_outside_is_replaced_while_the_job_runs_again(start_worker, story):
    worker = start_worker("children", "--child-processes", "1")
    handle = story.enqueue(jobs.gated.using(queue="children"), gate="open")
    wait_until(lambda: story.count("begun") == 1, "it runs")
    [child] = children_of(worker)
    os.kill(child, signal.SIGKILL)
    wait_until(lambda: story.count("begun") == 2, "it runs again", seconds=30)
    story.open("open")
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it is done")

    assert outcomes(handle) == [Outcome.LOST, Outcome.COMPLETED]
    assert children_of(worker) != [child]


def test_a_worker_that_is_killed_leaves_no_child_behind_not_even_a_busy_one(start_worker, story, executor_jobs):
    worker = start_worker("children", "--child-processes", "2")
    story.enqueue(executor_jobs.busy.using(queue="children"), how="python")
    wait_until(lambda: story.count("begun") == 1, "it runs")
    children = children_of(worker)
    assert len(children) == 2

    worker.send(signal.SIGKILL)

    wait_until(lambda: not any(map(lives, children)), "all are gone")


@pytest.mark.parametrize(
    ("queue", "name"), [("children", "wait_for_word"), ("loop", "wait_for_word_async"), ("threads", "wait_for_word")]
)
def test_a_drain_reaches_the_handlers_of_every_executor(start_worker, story, queue, name, executor_jobs):
    worker = start_worker(queue, DRAIN_SECONDS=20)
    handle = story.enqueue(getattr(executor_jobs, name).using(queue=queue))
    wait_until(lambda: story.count("begun") == 1, "it runs")
    worker.send(signal.SIGTERM)

    assert worker.wait() == 0

    assert story.count("told") == 1
    assert outcomes(handle) == [Outcome.INTERRUPTED]
    assert handle.status() is JobState.PENDING


@pytest.mark.parametrize("queue", ["children", "loop"])
def test_a_drain_that_is_over_hands_back_what_still_runs(start_worker, story, queue, executor_jobs):
    worker = start_worker(queue, DRAIN_SECONDS=0.5)
    job = executor_jobs.busy if queue == "children" else executor_jobs.busy_async
    handle = story.enqueue(job.using(queue=queue), how="sleep" if queue == "children" else "await")
    wait_until(lambda: story.count("begun") == 1, "it runs")
    children = children_of(worker)
    worker.send(signal.SIGTERM)

    worker.wait()

    assert outcomes(handle) == [Outcome.INTERRUPTED]
    wait_until(lambda: not any(map(lives, children)), "no child is left")


#: The one that holds up the loop comes last.
WAYS = [
    ("threads", "busy", "sql"), ("threads", "busy", "python"),
    ("children", "busy", "sleep"), ("children", "busy", "python"), ("children", "busy", "sql"),
    ("children", "busy", "c code"),
    ("loop", "busy_async", "await"), ("loop", "busy_async", "sql"), ("loop", "busy_async", "sleep"),
    ("loop", "busy_async", "c code"), ("loop", "busy_async", "python"),
]  # fmt: skip


@pytest.mark.parametrize("stop", ["timed out", "cancelled"])
def test_whatever_a_handler_is_busy_with_it_ends_within_the_grace_and_the_worker_goes_on(
    start_worker, story, rows, stop, executor_jobs
):
    worker = start_worker("threads,loop,children", "--child-processes", "4", "--concurrency", "24")
    more = {"timeout": 1} if stop == "timed out" else {}
    handles = {}
    for queue, name, how in WAYS:
        handle = story.enqueue(getattr(executor_jobs, name).using(queue=queue, **more), how=how)
        handles[queue, how] = handle
        wait_until(
            lambda handle=handle: story.count("begun", handle.id) or handle.status().is_finished,
            "it begins",
            seconds=30,
        )
    if stop == "cancelled":
        rows.run("update pgbroker.job set cancel_requested_at = now(), cancel_requested_by = 'me' where state = 1")

    wait_until(lambda: all(handle.status().is_finished for handle in handles.values()), "all have ended", seconds=40)

    expected = JobState.DEAD if stop == "timed out" else JobState.CANCELLED
    outcome = Outcome.TIMED_OUT if stop == "timed out" else Outcome.CANCELLED
    assert {way: handle.status() for way, handle in handles.items()} == dict.fromkeys(handles, expected)
    assert {way: outcomes(handle) for way, handle in handles.items()} == {way: [outcome] for way in handles}
    after = [story.enqueue(jobs.quick.using(queue=queue)) for queue in ("threads", "children")]
    after.append(story.enqueue(executor_jobs.quick_async.using(queue="loop")))
    wait_until(lambda: all(handle.status() is JobState.COMPLETED for handle in after), "work goes on", seconds=30)
    assert worker.lives
    assert (
        rows.one("select count(*) from pg_stat_activity where query = 'select pg_sleep(60)' and state = 'active'") == 0
    )


@pytest.mark.parametrize("ends", ["returns", "raises"])
def test_a_fork_that_comes_back_from_its_handler_ends_and_records_nothing(start_worker, story, ends, executor_jobs):
    worker = start_worker("loop,threads,children", "--concurrency", "1", "--child-processes", "1")
    forking = [
        story.enqueue(executor_jobs.come_back.using(queue="threads"), ends=ends),
        story.enqueue(executor_jobs.come_back_atomic.using(queue="threads"), ends=ends),
        story.enqueue(executor_jobs.come_back_atomic.using(queue="children"), ends=ends),
        story.enqueue(executor_jobs.come_back_async, ends=ends),
        story.enqueue(executor_jobs.come_back_loop, ends=ends),
    ]
    behind = [story.enqueue(jobs.quick.using(queue="threads")) for _ in range(10)]
    wait_until(lambda: all(handle.status().is_finished for handle in (*forking, *behind)), "all end", seconds=30)

    assert [outcomes(handle) for handle in forking] == [[Outcome.COMPLETED]] * 5
    assert story.count("done") == 15, "no fork runs what waits behind its handler, no writes are lost"
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.has_closed_output, "no fork is left"
