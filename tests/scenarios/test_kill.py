"""Workers that die or freeze in the middle of a job (B038, B047, B050)."""

import signal

import pytest

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution
from django_pgbroker.store.reclaim import reclaim_jobs
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs


def outcomes(handle):
    found = Execution.objects.filter(job_id=handle.id).order_by("lease_token")
    return [Outcome(execution.outcome) for execution in found]


@pytest.fixture(params=["processes", "supervisor"])
def start_three(start, request):
    """Starts three workers with one slot each, by three commands or by one.

    Answers how many commands live, and how many seconds a lapsed job may wait: under one command the duties may die
    with the first two processes, and come back with the next ones.
    """

    def start_three():
        if request.param == "supervisor":
            supervisor = start("--concurrency", "1", "--processes", "3", wait=False).wait_until_ready(3)
            return lambda: 1 if supervisor.lives else 0, 60
        workers = [start("--concurrency", "1", wait=False) for _ in range(3)]
        for worker in workers:
            worker.wait_until_ready()
        # a lease of 2 s, perhaps renewed once, and a sweep every 0.2 s; the rest is for a busy machine
        return lambda: sum(worker.lives for worker in workers), 5

    return start_three


def test_the_jobs_of_killed_workers_complete_elsewhere_within_lease_and_sweep(start_three, story, rows):
    """One of them leaves its presence row behind, of the other even that is gone."""
    count_living, longest = start_three()
    handles = [story.enqueue(jobs.kill_the_first_time) for _ in range(2)]
    wait_until(lambda: story.count("begun") == 2, "two workers run them and die")
    rows.run("delete from pgbroker.worker where id = (select max(worker_id) from pgbroker.job)")

    wait_until(
        lambda: {handle.status() for handle in handles} == {JobState.COMPLETED},
        "the third one completes them",
        seconds=10 + longest,
    )

    assert count_living() == 1
    assert story.count("done") == 2
    for handle in handles:
        assert outcomes(handle) == [Outcome.LOST, Outcome.COMPLETED]
        done = ArchivedJob.objects.get(pk=handle.id)
        assert (done.attempt, done.deaths) == (2, 1)
        lost = Execution.objects.get(job_id=handle.id, outcome=Outcome.LOST)
        assert 2 <= (lost.finished_at - lost.leased_at).total_seconds() < longest


def test_the_verdict_of_a_zombie_is_refused_and_the_zombie_lives_on(start, story, rows):
    zombie = start("--concurrency", "1", "--no-maintenance", wait=False)
    other = start("--concurrency", "1", wait=False)
    zombie.wait_until_ready()
    other.wait_until_ready().send(signal.SIGSTOP)
    handle = story.enqueue(jobs.gated, gate="open")
    wait_until(lambda: story.count("begun") == 1, "it runs")
    zombie.send(signal.SIGSTOP)
    other.send(signal.SIGCONT)
    wait_until(lambda: story.count("begun") == 2, "another worker runs it too, for the lease is over")
    story.open("open")
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the other worker completed it")
    winner = rows.one("select process_id from effect where what = 'done'")
    assert winner != zombie.pid

    zombie.send(signal.SIGCONT)

    wait_until(lambda: story.count("done") == 2, "the zombie finished its handler")
    wait_until(lambda: zombie.says("the verdict completed was refused"), "its verdict is refused")
    assert zombie.says("lease.lost")
    assert outcomes(handle) == [Outcome.LOST, Outcome.COMPLETED]
    after = story.enqueue(jobs.quick)
    wait_until(lambda: after.status() is JobState.COMPLETED, "work goes on")
    zombie.send(signal.SIGTERM)
    assert zombie.wait() == 0


def test_a_job_that_kills_its_process_runs_max_attempts_times_and_is_then_dead(start, story, rows, gateway):
    handle = story.enqueue(jobs.suicide)
    for attempt in (1, 2, 3):
        worker = start("--concurrency", "1", wait=False)
        assert worker.wait(40) == -signal.SIGKILL
        assert story.count("begun") == attempt
        rows.run("update pgbroker.job set lease_expires_at = now() - interval '1 s'")
        if attempt == 2:
            beside = story.enqueue(jobs.quick.using(priority="user"))
    wait_until(lambda: reclaim_jobs(gateway, batch=10), "its last claim is taken back")

    dead = ArchivedJob.objects.get(pk=handle.id)
    assert (dead.state, dead.reason, dead.attempt, dead.deaths) == (JobState.DEAD, "worker lost", 3, 3)
    assert outcomes(handle) == [Outcome.LOST] * 3
    assert beside.status() is JobState.COMPLETED, "other jobs keep flowing"


def test_under_a_supervisor_such_a_job_is_dead_after_max_attempts_and_the_processes_are_as_many_as_before(
    start, story, rows
):
    supervisor = start("--concurrency", "1", "--processes", "3", wait=False).wait_until_ready(3)
    handle = story.enqueue(jobs.suicide)

    wait_until(lambda: handle.status() is JobState.DEAD, "its attempts are spent", seconds=90)

    assert story.count("begun") == 3
    assert outcomes(handle) == [Outcome.LOST] * 3
    wait_until(lambda: supervisor.output.count("worker.started") == 3 + 3, "each was followed by another", seconds=60)
    beside = story.enqueue(jobs.quick)
    wait_until(lambda: beside.status() is JobState.COMPLETED, "other jobs keep flowing")
    supervisor.send(signal.SIGTERM)
    assert supervisor.wait() == 0
