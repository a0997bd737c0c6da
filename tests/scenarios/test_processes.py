"""Several worker processes under one command: killed ones, a killed supervisor, signals, orders."""

import os
import signal

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, Job, Worker
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs

SECONDS = 60


@pytest.fixture
def supervise(start):
    """Starts a supervisor and waits until all its workers are ready."""

    def supervise(processes, *arguments, settings=None):
        process = start("--processes", str(processes), *arguments, settings=settings, wait=False)
        return process.wait_until_ready(processes)

    return supervise


def workers():
    """The worker processes that have not ended, the oldest first."""
    return list(Worker.objects.filter(stopped_at=None).order_by("id"))


def stop_reasons():
    return list(Worker.objects.order_by("id").values_list("stop_reason", flat=True))


def test_a_killed_process_is_started_again_and_every_job_is_done(supervise, story):
    supervisor = supervise(3, "--concurrency", "2")
    handles = [story.enqueue(jobs.sleepy, seconds=0.05) for _ in range(100)]
    victim = workers()[-1]
    wait_until(lambda: story.count("done") > 20, "they work", seconds=SECONDS)
    wait_until(lambda: Job.objects.filter(worker_id=victim.pk).exists(), "the victim holds jobs", seconds=SECONDS)
    os.kill(victim.process_id, signal.SIGKILL)

    wait_until(lambda: supervisor.output.count("worker.started") == 4, "another one is started", seconds=SECONDS)
    ids = [handle.id for handle in handles]
    done = ArchivedJob.objects.filter(pk__in=ids, state=JobState.COMPLETED)
    wait_until(lambda: done.count() == len(ids), "all are done", seconds=SECONDS)

    assert supervisor.says("supervisor.worker_restarted: a worker process ended with status -9")
    assert not Job.objects.exists()
    supervisor.send(signal.SIGTERM)
    assert supervisor.wait() == 0


def test_sigterm_drains_all_processes_under_load(supervise, story):
    supervisor = supervise(3, "--concurrency", "2")
    for _ in range(150):
        story.enqueue(jobs.sleepy, seconds=0.1)
    wait_until(lambda: story.count("begun") > 10, "they work", seconds=SECONDS)

    supervisor.send(signal.SIGTERM)

    assert supervisor.wait(SECONDS) == 0
    assert stop_reasons() == ["stopped"] * 3
    assert not Job.objects.filter(state=JobState.RUNNING).exists()
    assert story.count("begun") == story.count("done")
    assert Job.objects.filter(state=JobState.PENDING, attempt=0).count() == 150 - story.count("done")
    assert not supervisor.says("supervisor.worker_restarted")
    assert supervisor.lines[-1].endswith("stopped.")


def test_a_service_manager_that_signals_all_processes_at_once_aborts_nothing(supervise, story):
    supervisor = supervise(2, "--concurrency", "1")
    handles = [story.enqueue(jobs.gated, gate="open") for _ in range(2)]
    wait_until(lambda: story.count("begun") == 2, "both run", seconds=SECONDS)

    pids = [worker.process_id for worker in workers()]
    for pid in (pids[0], supervisor.pid, pids[1]):
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: supervisor.output.count("worker.draining") == 2, "both drain")
    os.kill(pids[0], signal.SIGTERM)
    story.open("open")

    assert supervisor.wait(SECONDS) == 0
    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    assert stop_reasons() == ["stopped"] * 2


def test_ctrl_c_twice_hands_everything_back_at_once(supervise, story):
    supervisor = supervise(2, "--concurrency", "1")
    handles = [story.enqueue(jobs.stubborn) for _ in range(2)]
    wait_until(lambda: story.count("begun") == 2, "both run", seconds=SECONDS)
    supervisor.send(signal.SIGINT)
    wait_until(lambda: supervisor.output.count("worker.draining") == 2, "both drain")
    supervisor.send(signal.SIGINT)

    assert supervisor.wait(SECONDS) == 1
    assert stop_reasons() == ["aborted"] * 2
    left = Job.objects.filter(pk__in=[handle.id for handle in handles])
    assert set(left.values_list("state", "attempt")) == {(JobState.PENDING, 0)}


def test_processes_whose_supervisor_was_killed_drain_and_are_gone(supervise, story):
    supervisor = supervise(2, "--concurrency", "1")
    handle = story.enqueue(jobs.gated, gate="open")
    wait_until(lambda: story.count("begun") == 1, "it runs", seconds=SECONDS)

    supervisor.send(signal.SIGKILL)
    wait_until(lambda: supervisor.says("(held=1)"), "the one that works notices")
    wait_until(lambda: len(workers()) == 1, "the idle one has gone")
    assert not supervisor.has_closed_output
    story.open("open")

    wait_until(lambda: supervisor.has_closed_output, "both are gone", seconds=SECONDS)
    assert handle.status() is JobState.COMPLETED
    assert stop_reasons() == ["stopped"] * 2


def test_a_process_that_is_ordered_away_stays_away_and_without_any_the_supervisor_ends(supervise, story, rows):
    supervisor = supervise(2)
    first, second = workers()
    rows.run("update pgbroker.worker set drain_requested_at = now() where id = %s", first.pk)
    wait_until(lambda: len(workers()) == 1, "it goes", seconds=SECONDS)
    assert supervisor.lives
    handle = story.enqueue(jobs.quick)
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the other one works", seconds=SECONDS)

    rows.run("update pgbroker.worker set stop_requested_at = now() where id = %s", second.pk)

    assert supervisor.wait(SECONDS) == 0
    assert Worker.objects.count() == 2
    assert not supervisor.says("supervisor.worker_restarted")


def test_a_process_that_somebody_drains_by_a_signal_is_followed_by_another(supervise, story):
    supervisor = supervise(1)
    os.kill(workers()[0].process_id, signal.SIGTERM)
    supervisor.wait_until_ready(2)
    assert supervisor.says("INFO supervisor.worker_restarted: a worker process ended with status 0")
    handle = story.enqueue(jobs.quick)
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it works", seconds=SECONDS)


def test_until_empty_ends_when_every_process_has_nothing_left(start, story):
    handles = [story.enqueue(jobs.quick) for _ in range(30)]
    supervisor = start("--processes", "2", "--until-empty", wait=False)
    assert supervisor.wait(SECONDS) == 0
    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    assert stop_reasons() == ["stopped"] * 2
    assert not supervisor.says("supervisor.worker_restarted")


def test_only_the_first_two_processes_run_the_duties(supervise, rows):
    """A standby, should the first be killed, and no more connections than that."""
    supervise(3)
    connections = """
        select count(*) from pg_stat_activity where datname = current_database() and application_name like %s
    """
    # each process starts its duties before it listens
    wait_until(lambda: rows.one(connections, "pgbroker listener%") == 3, "all of them are there")
    wait_until(lambda: rows.one(connections, "pgbroker maintenance%") >= 2, "the duties are there")
    assert rows.one(connections, "pgbroker maintenance%") == 2
