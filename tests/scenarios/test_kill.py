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


@pytest.mark.parametrize("row_is_deleted", [False, True], ids=["its row stays", "its row is deleted"])
def test_the_job_of_a_killed_worker_completes_elsewhere_within_lease_and_sweep(start, story, rows, row_is_deleted):
    start("--concurrency", "1")
    start("--concurrency", "1")
    handle = story.enqueue(jobs.kill_the_first_time)
    wait_until(lambda: story.count("begun"), "one of them runs it and dies")
    if row_is_deleted:
        rows.run("delete from pgbroker.worker where id = (select worker_id from pgbroker.job)")

    wait_until(lambda: handle.status() is JobState.COMPLETED, "the other one completed it")

    assert outcomes(handle) == [Outcome.LOST, Outcome.COMPLETED]
    done = ArchivedJob.objects.get(pk=handle.id)
    assert (done.attempt, done.deaths) == (2, 1)
    assert story.count("done") == 1
    lost = Execution.objects.get(job_id=handle.id, outcome=Outcome.LOST)
    # a lease of 2 s, perhaps renewed once, and a sweep every 0.2 s; the rest is for a busy machine
    assert 2 <= (lost.finished_at - lost.leased_at).total_seconds() < 5


def test_the_verdict_of_a_zombie_is_refused_and_the_zombie_lives_on(start, story, rows):
    zombie = start("--concurrency", "1", "--no-maintenance")
    handle = story.enqueue(jobs.gated, gate="open")
    wait_until(lambda: story.count("begun") == 1, "it runs")
    zombie.send(signal.SIGSTOP)
    start("--concurrency", "1")
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
            beside = story.enqueue(jobs.quick)
    wait_until(lambda: reclaim_jobs(gateway, batch=10), "its last claim is taken back")

    dead = ArchivedJob.objects.get(pk=handle.id)
    assert (dead.state, dead.reason, dead.attempt, dead.deaths) == (JobState.DEAD, "worker lost", 3, 3)
    assert outcomes(handle) == [Outcome.LOST] * 3
    start("--until-empty").wait()
    assert beside.status() is JobState.COMPLETED
    assert story.count("begun") == 3
