"""B086: a pause is asked for in the claim itself, so no worker, however new, claims from a paused queue."""

from django_pgbroker import pause_queue, resume_queue
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import Execution, Job
from tests.maintenance.waiting import wait_until


def pause(rows):
    """Pause, and tell the time of the database after the commit."""
    pause_queue("default", actor="test")
    return rows.one("select clock_timestamp()")


def test_b086_workers_that_come_and_go_run_nothing_of_a_paused_queue_until_it_is_resumed(declare, start, rows):
    noop = declare("tests.noop")(lambda: 1)
    beside = declare("tests.beside", queue="beside")(lambda: 1)
    noop.enqueue()
    pause(rows)
    for _ in range(99):
        noop.enqueue()
    for _ in range(5):
        handle = beside.enqueue()
        worker = start("default,beside", concurrency=4)
        wait_until(lambda handle=handle: handle.status() is JobState.COMPLETED, "it works, on the other queue")
        assert worker.drain() == 0
    assert Execution.objects.filter(queue__name="default").count() == 0
    assert set(Job.objects.values_list("state", "attempt")) == {(JobState.PENDING, 0)}

    resume_queue("default", actor="test")
    start("default", concurrency=4)
    wait_until(lambda: not Job.objects.exists(), "all run")
    assert Execution.objects.filter(queue__name="default").count() == 100


def test_b086_no_claim_begins_after_the_pause_was_committed_and_what_runs_finishes(declare, start, rows, settings):
    # or the two would have claimed all of them before the pause
    settings.PGBROKER = {"POLL_MAX_SECONDS": 0.1, "PREFETCH_LIMIT": 20}
    noop = declare("tests.noop")(lambda: 1)
    for _ in range(800):
        noop.enqueue()
    for _ in range(2):
        start(concurrency=2)
    wait_until(Execution.objects.exists, "they run")
    paused_at = pause(rows)
    wait_until(lambda: not Job.objects.filter(state=JobState.RUNNING).exists(), "what was claimed is done")
    left = Job.objects.count()

    assert left > 0, "the pause came too late to show anything"
    assert Execution.objects.latest("leased_at").leased_at <= paused_at
    # the workers are woken, and still find nothing
    rows.run("select pg_notify('pgbroker_wake', 'default')")
    resume_queue("default", actor="test")
    wait_until(lambda: not Job.objects.exists(), "all run", 30)
    assert Execution.objects.count() == 800


def test_b086_a_retry_waits_too(declare, start, gate, rows):
    attempts = []

    @declare()
    def flaky():
        attempts.append(1)
        gate.wait()
        if len(attempts) == 1:
            raise ValueError("again")

    beside = declare("tests.beside", queue="beside")(lambda: 1)
    handle = flaky.enqueue()
    start("default,beside", concurrency=1)
    gate.wait_until_arrived()
    pause(rows)
    gate.open()
    wait_until(lambda: handle.status() is JobState.PENDING, "it failed and would run again")
    for _ in range(3):
        other = beside.enqueue()
        wait_until(lambda other=other: other.status() is JobState.COMPLETED, "the worker looks for work")
    assert (handle.status(), len(attempts)) == (JobState.PENDING, 1)
    resume_queue("default", actor="test")
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it runs again")
    assert len(attempts) == 2
