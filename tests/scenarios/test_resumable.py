"""Long jobs that outlive their workers: kills, deploys and frozen processes cost at most one step."""

import signal

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution, Job, JobProgress, JobStep
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs

STEPS = 20
DEPLOYS = 10


def test_a_job_of_twenty_steps_survives_ten_deploys_and_runs_each_step_once(start, story):
    """Rolling: the next worker is there before the old one is told to go, always in the middle of a step."""
    handle = story.enqueue(jobs.stepwise, steps=STEPS)
    worker, pids = start("--concurrency", "1"), []
    for deploy in range(DEPLOYS):
        last = 2 * deploy
        wait_until(lambda last=last: story.count(f"begun {last}"), "the last step of this worker has begun")
        after = start("--concurrency", "1")
        worker.send(signal.SIGTERM)
        wait_until(lambda worker=worker: worker.says("worker.draining"), "it drains")
        story.open(f"step {last}")
        story.open(f"step {last + 1}")
        assert worker.wait() == 0
        pids += [worker.pid, after.pid]
        worker = after
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the last worker completes it")

    assert [story.count(f"begun {number}") for number in range(STEPS)] == [1] * STEPS
    assert [story.count(f"done {number}") for number in range(STEPS)] == [1] * STEPS
    assert handle.result() == pids
    job = ArchivedJob.objects.get(pk=handle.id)
    assert (job.attempt, job.interruptions, job.deaths) == (1, DEPLOYS, 0)
    assert job.progress == {"done": STEPS, "total": STEPS, "stage": f"step {STEPS - 1}"}
    outcomes = Execution.objects.filter(job_id=handle.id).order_by("lease_token").values_list("outcome", flat=True)
    assert list(outcomes) == [Outcome.INTERRUPTED] * DEPLOYS + [Outcome.COMPLETED]
    assert not JobStep.objects.exists()


def test_a_worker_that_is_killed_in_a_step_has_only_this_step_done_again(start, story):
    for number in range(4):
        story.open(f"step {number}")
    story.open("die in 2")
    handle = story.enqueue(jobs.stepwise, steps=4)
    start("--concurrency", "1")
    wait_until(lambda: story.count("begun 2"), "it comes to the third step and dies")
    start("--concurrency", "1")
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the other worker completes it")

    assert [story.count(f"begun {number}") for number in range(4)] == [1, 1, 2, 1]
    assert [story.count(f"done {number}") for number in range(4)] == [1] * 4
    assert ArchivedJob.objects.get(pk=handle.id).deaths == 1


def test_rows_that_are_written_with_the_cursor_are_there_exactly_once(start, story):
    handle = story.enqueue(jobs.import_rows, rows=12, dies_at=7)
    first = start("--concurrency", "1", wait=False)
    wait_until(lambda: not first.lives, "it dies in the middle of a row", seconds=60)
    assert [story.count(f"row {number}") for number in range(12)] == [1] * 7 + [0] * 5
    start("--concurrency", "1")
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the other worker completes it")
    assert [story.count(f"row {number}") for number in range(12)] == [1] * 12


def test_a_frozen_worker_that_comes_back_stores_nothing_of_what_others_have_taken_over(start, story):
    """Its step ends after another worker has begun the same one."""
    handle = story.enqueue(jobs.stepwise, steps=2)
    frozen = start("--concurrency", "1")
    wait_until(lambda: story.count("begun 0"), "it is in the first step")
    frozen.send(signal.SIGSTOP)
    other = start("--concurrency", "1")
    wait_until(lambda: story.count("begun 0") == 2, "the other worker has taken the job over")
    story.open("step 0")
    wait_until(lambda: story.count("begun 1"), "it has come to the second step")
    [remembered] = JobStep.objects.filter(job_id=handle.id)
    frozen.send(signal.SIGCONT)
    wait_until(lambda: frozen.says("lease.lost") or not frozen.lives, "the frozen worker has noticed")

    assert [step.result for step in JobStep.objects.filter(job_id=handle.id)] == [other.pid]
    assert JobStep.objects.get().lease_token == remembered.lease_token
    wait_until(JobProgress.objects.filter(done=1).exists, "the progress is that of the other worker")
    assert JobProgress.objects.get().lease_token == Job.objects.get(pk=handle.id).lease_token
    story.open("step 1")
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the other worker completes it")
    assert handle.result() == [other.pid, other.pid]
