"""Workers that make room for a fresh process: after so many jobs, for their memory, for handlers that hang."""

import re
import signal

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, Execution, Job, Worker
from django_pgbroker.worker.recycling import RECYCLED
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs

SECONDS = 60


def test_a_worker_ends_after_its_jobs_and_says_so_by_its_status(start, story):
    handles = [story.enqueue(jobs.quick) for _ in range(8)]
    worker = start("--concurrency", "2", "--max-jobs", "3")
    assert worker.wait() == RECYCLED
    assert story.count("done") == 3
    assert worker.says("worker.recycled: 3 jobs done")
    assert sorted(handle.status() for handle in handles) == [JobState.PENDING] * 5 + [JobState.COMPLETED] * 3
    assert set(Job.objects.values_list("attempt", "interruptions")) == {(0, 0)}
    assert Worker.objects.get().stop_reason == "stopped"


def test_what_still_runs_beside_the_last_job_is_waited_for(start, story):
    first = story.enqueue(jobs.gated, gate="open")
    worker = start("--concurrency", "2", "--max-jobs", "2", settings={"DRAIN_SECONDS": 0.2})
    wait_until(lambda: story.count("begun"), "it runs")
    second, third = story.enqueue(jobs.quick), story.enqueue(jobs.quick)
    wait_until(lambda: second.status() is JobState.COMPLETED, "the second one is done")
    assert worker.lives
    story.open("open")
    assert worker.wait() == RECYCLED
    assert (first.status(), third.status()) == (JobState.COMPLETED, JobState.PENDING)


def test_the_supervisor_starts_a_fresh_process_at_once(start, story):
    handles = [story.enqueue(jobs.quick) for _ in range(6)]
    supervisor = start("--processes", "1", "--concurrency", "1", "--max-jobs", "2", wait=False)
    ids = [handle.id for handle in handles]
    done = ArchivedJob.objects.filter(pk__in=ids, state=JobState.COMPLETED)
    wait_until(lambda: done.count() == 6, "all are done", seconds=SECONDS)
    wait_until(lambda: supervisor.output.count("supervisor.worker_recycled") == 3, "three were recycled")

    supervisor.send(signal.SIGTERM)
    assert supervisor.wait() == 0
    assert not supervisor.says("supervisor.worker_restarted")
    assert len(set(Execution.objects.values_list("worker_id", flat=True))) == 3


def test_until_empty_ends_although_processes_are_recycled(start, story):
    handles = [story.enqueue(jobs.quick) for _ in range(5)]
    supervisor = start("--processes", "1", "--max-jobs", "2", "--until-empty", wait=False)
    assert supervisor.wait(SECONDS) == 0
    assert {handle.status() for handle in handles} == {JobState.COMPLETED}


def test_too_much_memory_is_looked_at_after_a_job(start, story):
    worker = start("--max-memory", "1")
    assert worker.lives
    handle = story.enqueue(jobs.quick)
    assert worker.wait() == RECYCLED
    assert handle.status() is JobState.COMPLETED
    assert re.search(r"worker.recycled: \d+ MiB of memory used", worker.output)


def test_too_many_hanging_handlers_end_the_process(start, story, rows):
    handle = story.enqueue(jobs.sleepy, seconds=SECONDS)
    worker = start("--concurrency", "2", settings={"STOP_GRACE_SECONDS": 0.2})
    wait_until(lambda: story.count("begun"), "it runs")
    rows.run("update pgbroker.job set cancel_requested_at = now() where id = %s", handle.id)
    assert worker.wait(SECONDS) == RECYCLED
    assert worker.says("ERROR worker.too_many_hung")
    assert handle.status() is JobState.CANCELLED
