"""Workers that are asked to stop: what runs, what has not begun, and what does not end (drain on deploy)."""

import signal
import time

import pytest
from django.db import transaction

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import Execution, Job, Worker
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_what_runs_finish_and_hands_back_what_has_not_begun(start, story, rows, number):
    with transaction.atomic():
        for _ in range(150):
            story.enqueue(jobs.quick)
        running = story.enqueue(jobs.gated, gate="open")
        behind = [story.enqueue(jobs.quick) for _ in range(50)]
    worker = start("--concurrency", "1")
    wait_until(lambda: story.count("begun"), "it runs")

    worker.send(number)
    wait_until(lambda: worker.says("worker.draining"), "it drains")
    wait_until(lambda: rows.one("select count(*) from pgbroker.job where state = 1") == 1, "the rest is handed back")
    assert worker.lives
    story.open("open")

    assert worker.wait() == 0
    assert running.status() is JobState.COMPLETED
    left = Job.objects.filter(pk__in=[handle.id for handle in behind])
    assert set(left.values_list("state", "attempt")) == {(JobState.PENDING, 0)}
    assert left.count() == 50
    assert Worker.objects.get().stop_reason == "stopped"
    assert worker.lines[-1].endswith("stopped.")


@pytest.mark.parametrize("handler", [jobs.stubborn, jobs.stubborn_async], ids=["sync", "async"])
def test_handlers_that_do_not_end_in_time_are_interrupted_uncounted_and_hold_nothing_up(start, story, handler):
    handles = [story.enqueue(handler) for _ in range(4)]
    worker = start("--concurrency", "4", settings={"DRAIN_SECONDS": 0.3})
    wait_until(lambda: story.count("begun") == 4, "all run")

    began = time.monotonic()
    worker.send(signal.SIGTERM)

    assert worker.wait(15) == 0
    assert time.monotonic() - began < 8
    left = Job.objects.filter(pk__in=[handle.id for handle in handles])
    assert set(left.values_list("state", "attempt", "interruptions")) == {(JobState.PENDING, 0, 1)}
    assert set(Execution.objects.values_list("outcome", "reason")) == {
        (Outcome.INTERRUPTED, "the worker had to stop before the job was done")
    }


def test_a_second_signal_hands_everything_back_at_once_and_says_so_by_its_status(start, story):
    handles = [story.enqueue(jobs.stubborn) for _ in range(2)]
    worker = start("--concurrency", "2")
    wait_until(lambda: story.count("begun") == 2, "both run")
    worker.send(signal.SIGTERM)
    wait_until(lambda: worker.says("worker.draining"), "it drains")
    worker.send(signal.SIGTERM)

    assert worker.wait(10) == 1
    left = Job.objects.filter(pk__in=[handle.id for handle in handles])
    assert set(left.values_list("state", "attempt")) == {(JobState.PENDING, 0)}
    assert Worker.objects.get().stop_reason == "aborted"
