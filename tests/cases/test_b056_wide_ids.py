"""B056: every sequence of the broker has left 32 bits, and whole workers and the admin work as before."""

import signal

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, Execution, Job, Worker
from tests.admin.screens import address_of, list_url
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs
from tests.store.test_wide_ids import LAST_NARROW, SEQUENCES


@pytest.fixture
def wide(rows):
    """The next number that each sequence gives is the last one of 32 bits."""
    token = rows.one("select last_value from pgbroker.lease_token_seq")
    for (name,) in rows.gateway.connection.execute(SEQUENCES).fetchall():
        rows.run("select setval(%s::regclass, %s)", name, LAST_NARROW - 1)
    yield
    rows.run("select setval('pgbroker.lease_token_seq', %s)", token)


def test_b056_workers_that_complete_fail_and_die_and_the_pages_about_it(wide, start_process, story, rows, operator):
    workers = [start_process("--concurrency", "1", wait=False) for _ in range(3)]
    for worker in workers:
        worker.wait_until_ready()
    quick = [story.enqueue(jobs.quick) for _ in range(4)]
    killed = story.enqueue(jobs.kill_the_first_time)
    snagged = story.enqueue(jobs.sleepy.using(max_attempts=2), seconds=-1)
    wait_until(lambda: killed.status() is JobState.COMPLETED, "it was killed once and ran again")
    wait_until(lambda: snagged.status() is JobState.DEAD, "it failed twice")
    wait_until(lambda: {handle.status() for handle in quick} == {JobState.COMPLETED}, "the others ran")
    held = story.enqueue(jobs.gated, gate="open")
    wait_until(lambda: held.status() is JobState.RUNNING, "it runs")

    assert max(Worker.objects.values_list("pk", flat=True)) > LAST_NARROW
    assert min(Execution.objects.exclude(job_id=quick[0].id).values_list("job_id", "lease_token")) > (LAST_NARROW,) * 2
    seen = {
        "job": Job.objects.get(),
        "archivedjob": ArchivedJob.objects.get(pk=killed.id),
        "deadletter": ArchivedJob.objects.get(pk=snagged.id),
        "execution": Execution.objects.filter(job_id=killed.id).first(),
        "worker": Worker.objects.order_by("-pk").first(),
        "queue": Job.objects.get().queue,
    }
    for model, row in seen.items():
        assert operator.get(list_url(model)).status_code == 200, model
        page = operator.get(address_of(model, row))
        assert page.status_code == 200, model
        shown = {"execution": "job_id", "worker": "name", "queue": "name"}.get(model, "pk")
        assert str(getattr(row, shown)) in page.content.decode(), model
    story.open("open")
    for worker in workers:
        if worker.lives:
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0
