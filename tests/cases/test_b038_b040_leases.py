"""B038: a dead worker's name lives again. B040: heartbeats as rare as the settings allow."""

import pytest

from django_pgbroker.conf import read_settings
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import Execution, Worker
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs


def test_b038_a_job_comes_back_although_its_dead_worker_seems_to_live_under_the_same_name(start_process, story, rows):
    """The row of the dead one even beats: recovery asks the lease of the job and nobody else."""
    first = start_process("--concurrency", "1", "--no-maintenance")
    handle = story.enqueue(jobs.gated, gate="open")
    wait_until(lambda: story.count("begun") == 1, "it runs")
    first.kill()
    story.open("open")
    second = start_process("--concurrency", "1")
    rows.run(
        "update pgbroker.worker set heartbeat_at = now() + interval '1 hour', (name, hostname, process_id) ="
        " (select name, hostname, process_id from pgbroker.worker order by id desc limit 1)"
    )
    assert len(set(Worker.objects.values_list("name", "hostname", "process_id"))) == 1

    wait_until(lambda: handle.status() is JobState.COMPLETED, "it runs again")

    assert second.lives
    lost, done = Execution.objects.order_by("lease_token")
    assert (lost.outcome, done.outcome) == (Outcome.LOST, Outcome.COMPLETED)
    # a lease of 2 s, perhaps renewed once, and a sweep every 0.2 s; the rest is for a busy machine
    assert (lost.finished_at - lost.leased_at).total_seconds() < 8


@pytest.mark.parametrize(
    ("lease", "job", "workers"),
    [(3, 7, 2), pytest.param(5, 60, 4, marks=pytest.mark.drill)],
)
def test_b040_jobs_that_outlive_their_leases_several_times_run_once_each(start_process, story, lease, job, workers):
    """The heartbeat is the slowest that the settings take: half a lease."""
    settings = {"LEASE_SECONDS": lease, "HEARTBEAT_SECONDS": lease / 2}
    with pytest.raises(ConfigurationError, match="more than half"):
        read_settings({**settings, "HEARTBEAT_SECONDS": lease / 2 + 0.01}, ["default"])
    running = [
        start_process("--concurrency", str(20 // workers), settings=settings, wait=False) for _ in range(workers)
    ]
    for worker in running:
        worker.wait_until_ready()
    handles = [story.enqueue(jobs.sleepy, seconds=job) for _ in range(20)]

    wait_until(lambda: all(handle.status().is_finished for handle in handles), "all are done", seconds=3 * job + 10)

    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    assert set(Execution.objects.values_list("attempt", "outcome")) == {(1, Outcome.COMPLETED)}
    assert story.count("begun") == story.count("done") == Execution.objects.count() == 20
    assert not any(worker.says("lease.lost") for worker in running)
