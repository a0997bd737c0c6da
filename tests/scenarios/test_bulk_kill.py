"""A bulk verb whose worker is killed again and again is carried out once on each job, audited once."""

from collections import Counter

from django_pgbroker import JobHandle
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, AuditEntry, Execution, Job
from django_pgbroker.operations.job_verbs import redrive_jobs
from tests.maintenance.waiting import wait_until
from tests.operations.verbs.crowd import add_dead_letters

COUNT = 4_000
KILLS = 3


def test_each_dead_letter_is_redriven_once_although_it_dies_again_and_the_worker_is_killed(start, rows):
    add_dead_letters(rows, COUNT, queue="mail", job_type="scenario.hopeless")
    rows.run("update pgbroker.archived_job set max_attempts = 1, attempt = 1")
    # those that are redriven die again at once, beside the verb that goes on
    start("--queues", "mail", "--concurrency", "2", wait=False)
    report = redrive_jobs(JobFilter(queue="mail"), per_second=800, actor="ada")
    bulk = JobHandle(report.background_job_id)
    for kill in range(1, KILLS + 1):
        worker = start("--concurrency", "1", "--no-maintenance", wait=False)
        reached = kill * COUNT // (KILLS + 2)
        wait_until(lambda at=reached: audited() >= at, "it has come so far", seconds=60)
        worker.process.kill()
        worker.wait()
        assert bulk.status() is not JobState.COMPLETED
    start("--concurrency", "1", "--no-maintenance", wait=False)
    wait_until(lambda: bulk.status() is JobState.COMPLETED, "it is done", seconds=60)
    wait_until(lambda: not Job.objects.exists(), "the redriven ones have died again", seconds=60)

    assert bulk.result()["changed"] == audited() == COUNT
    told = Counter(job_id for entry in AuditEntry.objects.all() for job_id in entry.target["jobs"])
    assert len(told) == COUNT
    assert set(told.values()) == {1}
    assert ArchivedJob.objects.filter(state=JobState.DEAD).count() == COUNT
    runs = Counter(Execution.objects.exclude(job_id=bulk.id).values_list("job_id", flat=True))
    assert (len(runs), set(runs.values())) == (COUNT, {1})


def audited():
    return sum(AuditEntry.objects.values_list("count", flat=True))
