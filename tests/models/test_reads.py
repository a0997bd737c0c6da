"""What the models add to plain columns: never, lists of ids, defaults of the database, joins, and dead letters."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from django_pgbroker.domain.states import Outcome
from django_pgbroker.models import ArchivedJob, DeadLetter, Execution, Job, Queue, StatMinute, Worker
from tests.factories import ArchivedJobFactory, ExecutionFactory, JobFactory, QueueFactory, WorkerFactory

pytestmark = pytest.mark.django_db


def stored_expiry(job: Job) -> str:
    with connection.cursor() as cursor:
        cursor.execute("select expires_at::text from pgbroker.job where id = %s", [job.pk])
        return str(cursor.fetchone()[0])


def test_a_job_that_never_expires_is_none_in_python_and_infinity_in_the_table() -> None:
    job = JobFactory(expires_at=None)

    assert stored_expiry(job) == "infinity"
    assert Job.objects.get().expires_at is None
    assert Job.objects.values_list("expires_at", flat=True).get() is None
    assert Job.objects.annotate(until=F("expires_at")).get().until is None


def test_an_expiry_is_kept_and_found_by_date() -> None:
    expiry = timezone.now() + timedelta(hours=1)
    expiring, lasting = JobFactory(expires_at=expiry), JobFactory(expires_at=None)

    assert Job.objects.get(pk=expiring.pk).expires_at == expiry
    assert list(Job.objects.filter(expires_at__lt=expiry + timedelta(seconds=1))) == [expiring]
    assert list(Job.objects.filter(expires_at__gt=expiry)) == [lasting]


def test_jobs_with_and_without_an_expiry_can_be_made_in_bulk() -> None:
    expiry = timezone.now()
    jobs = [JobFactory.build(expires_at=each, queue_id=1, tenant_id=1, job_type_id=1) for each in (expiry, None)]
    for job in jobs:
        job.queue_id = job.tenant_id = job.job_type_id = 1

    Job.objects.bulk_create(jobs)

    assert list(Job.objects.order_by("id").values_list("expires_at", flat=True)) == [expiry, None]


def test_a_list_of_ids_is_kept() -> None:
    worker = WorkerFactory(job_type_ids=[1, 5_000_000_000])

    assert Worker.objects.get(pk=worker.pk).job_type_ids == [1, 5_000_000_000]
    assert Worker.objects.get(pk=WorkerFactory().pk).job_type_ids == []


def test_the_database_dates_a_new_row() -> None:
    queue = Queue.objects.create(name="critical")

    queue.refresh_from_db()

    assert abs(queue.created_at - timezone.now()) < timedelta(minutes=5)


def test_dead_letters_are_the_archived_jobs_in_state_dead() -> None:
    ArchivedJobFactory()
    dead = ArchivedJobFactory(dead=True)

    assert [letter.pk for letter in DeadLetter.objects.all()] == [dead.pk]
    assert ArchivedJob.objects.count() == 2


def test_names_come_with_the_jobs_in_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    JobFactory(queue=QueueFactory(name="critical"))

    with django_assert_num_queries(1):
        [job] = Job.objects.with_names()
        shown = (job.queue.name, job.job_type.name, job.tenant.name)

    assert shown == ("critical", "shop.send_receipt", "default")


def test_a_job_reaches_its_payload() -> None:
    JobFactory()

    assert Job.objects.select_related("payload").get().payload.arguments == {"order_id": 7}


def test_the_claims_of_a_job_are_listed_oldest_first() -> None:
    later, first = ExecutionFactory(job_id=7, lease_token=20), ExecutionFactory(job_id=7, lease_token=10, failed=True)
    ExecutionFactory(job_id=8)

    assert list(Execution.objects.for_job(7)) == [first, later]


def test_a_stopped_worker_is_not_among_the_running_ones() -> None:
    running = WorkerFactory()
    WorkerFactory(stopped_at=timezone.now())

    assert list(Worker.objects.running()) == [running]


def test_statistics_have_a_composite_key() -> None:
    now = timezone.now().replace(second=0, microsecond=0)
    row = StatMinute.objects.create(
        minute=now, worker_id=1, queue_id=1, job_type_id=1, outcome=Outcome.COMPLETED, wait_bucket=3, run_bucket=4,
        jobs=5, wait_microseconds=1, run_microseconds=1,
    )  # fmt: skip

    assert StatMinute.objects.get(pk=row.pk).jobs == 5
