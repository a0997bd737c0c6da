"""A verb on very many jobs is done by a job of the broker: with progress, at a pace, cancellable, by permission."""

import time

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from django_pgbroker import JobHandle, cancel_job
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, AuditEntry, Job, JobProgress
from django_pgbroker.operations.job_verbs import purge_queue, redrive_jobs, set_job_priorities
from tests.maintenance.waiting import wait_until
from tests.operations.verbs.crowd import add_dead_letters, add_waiting_jobs

#: Where the dead letters are; nobody takes them from there unless a test says so.
MAIL = "mail"


def audited(bulk):
    """How many jobs the audit says a bulk verb has changed."""
    return sum(AuditEntry.objects.filter(target__bulk=bulk).values_list("count", flat=True))


def test_many_dead_letters_are_redriven_while_workers_run_them(declare, start, rows):
    ran = []

    @declare(name="tests.again")
    def again(left):
        ran.append(left)

    add_dead_letters(rows, 3_000, queue=MAIL, job_type="tests.again")
    bulk = JobHandle(redrive_jobs(JobFilter(queue=MAIL), actor="ada", reason="fixed").background_job_id)
    start("default,mail", concurrency=4)
    wait_until(lambda: ArchivedJob.objects.filter(state=JobState.COMPLETED).count() == 3_001, "all ran", seconds=60)

    assert bulk.result() == {"changed": 3_000, "refused": 0}
    assert len(ran) == 3_000
    done = ArchivedJob.objects.get(pk=bulk.id)
    assert (done.progress["done"], done.progress["total"]) == (3_000, 3_000)
    assert done.created_by == "ada"
    entries = AuditEntry.objects.filter(target__bulk=bulk.id)
    assert audited(bulk.id) == 3_000
    assert {(entry.actor, entry.source, entry.reason, entry.action) for entry in entries} == {
        ("ada", "code", "fixed", "job.redrive")
    }


def test_it_keeps_its_pace_and_ends_where_it_is_cancelled(start, rows):
    add_dead_letters(rows, 500, queue=MAIL)
    bulk = JobHandle(redrive_jobs(JobFilter(queue=MAIL), per_second=100, actor="ada").background_job_id)
    began = time.monotonic()
    start(concurrency=1)
    wait_until(lambda: Job.objects.filter(queue__name=MAIL).count() >= 200, "some are redriven", seconds=20)
    assert time.monotonic() - began >= 1, "200 at 100 a second, of which the first hundred come at once"
    assert JobProgress.objects.get(job_id=bulk.id).total == 500

    cancel_job(bulk.id, actor="grace", reason="too many")
    wait_until(lambda: bulk.status() is JobState.CANCELLED, "it has stopped")
    redriven = Job.objects.filter(queue__name=MAIL).count()
    assert 200 <= redriven < 500
    assert audited(bulk.id) == redriven
    assert ArchivedJob.objects.filter(state=JobState.DEAD).count() == 500 - redriven


def test_it_goes_on_where_an_interrupted_attempt_was(start, rows):
    add_dead_letters(rows, 400, queue=MAIL)
    bulk = JobHandle(redrive_jobs(JobFilter(queue=MAIL), per_second=100, actor="ada").background_job_id)
    first = start(concurrency=1)
    wait_until(lambda: Job.objects.filter(queue__name=MAIL).count() >= 100, "some are redriven", seconds=20)
    first.worker.stopping.request_abort()
    first.join()
    assert bulk.status() in (JobState.PENDING, JobState.SCHEDULED)

    start(concurrency=1)
    wait_until(lambda: bulk.status() is JobState.COMPLETED, "it is done", seconds=30)
    assert bulk.result() == {"changed": 400, "refused": 0}
    assert audited(bulk.id) == Job.objects.filter(queue__name=MAIL).count() == 400


def test_the_permission_of_the_user_counts_when_it_runs(start, rows):
    user = get_user_model().objects.create_user("grace")
    user.user_permissions.set([Permission.objects.get(codename="set_job_priority")])
    add_waiting_jobs(rows, 10, queue=MAIL)
    bulk = JobHandle(set_job_priorities(JobFilter(queue=MAIL), 9, actor=user, in_background=True).background_job_id)
    user.user_permissions.clear()
    start(concurrency=1)
    wait_until(lambda: bulk.status().is_finished, "it has ended")
    assert bulk.status() is JobState.CANCELLED
    assert "may not do this any more" in ArchivedJob.objects.get(pk=bulk.id).reason
    assert not Job.objects.filter(priority=9).exists()


def test_one_that_finds_nothing_to_do_is_completed(start, rows):
    rows.queue(MAIL)
    bulk = JobHandle(redrive_jobs(JobFilter(queue=MAIL), per_second=5, actor="ada").background_job_id)
    start(concurrency=1)
    wait_until(lambda: bulk.status() is JobState.COMPLETED, "it is done")
    assert bulk.result() == {"changed": 0, "refused": 0}


def test_a_purge_of_a_flood_comes_before_the_flood(declare, start, rows):
    ran = []

    @declare(name="tests.flood")
    def flood(left):
        ran.append(left)
        time.sleep(0.005)

    add_waiting_jobs(rows, 4_000)
    rows.run("update pgbroker.job set job_type_id = %s", rows.job_type("tests.flood"))
    bulk = JobHandle(purge_queue("default", actor="ada").background_job_id)
    start(concurrency=1)
    wait_until(lambda: bulk.status() is JobState.COMPLETED, "it is done", seconds=30)
    assert bulk.result()["changed"] > 3_000
    assert len(ran) < 1_000


@pytest.mark.parametrize("queue", [None, "chores"])
def test_it_waits_in_the_queue_that_is_set_for_such_jobs(queue, rows, settings):
    settings.PGBROKER = {**settings.PGBROKER, "BULK_QUEUE": queue}
    add_waiting_jobs(rows, 1, queue=MAIL)
    report = set_job_priorities(JobFilter(queue=MAIL), 9, actor="ada", in_background=True)
    assert Job.objects.get(pk=report.background_job_id).queue.name == (queue or "default")
