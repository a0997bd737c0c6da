"""Rows of the broker for tests that do not care how they came to be, made by the ORM and past every statement."""

from datetime import timedelta
from typing import Any

import factory
from django.utils import timezone
from factory.django import DjangoModelFactory

from django_pgbroker import models
from django_pgbroker.domain.states import JobState, Outcome


def _ago(**span: Any) -> factory.LazyFunction:
    return factory.LazyFunction(lambda: timezone.now() - timedelta(**span))


class TenantFactory(DjangoModelFactory):
    name = "default"

    class Meta:
        model = models.Tenant
        django_get_or_create = ("name",)


class QueueFactory(DjangoModelFactory):
    name = "default"

    class Meta:
        model = models.Queue
        django_get_or_create = ("name",)


class JobTypeFactory(DjangoModelFactory):
    name = "shop.send_receipt"

    class Meta:
        model = models.JobType
        django_get_or_create = ("name",)


class WorkerFactory(DjangoModelFactory):
    name = factory.Sequence("worker-{}".format)
    hostname = "host"
    process_id = 4711
    version = "0.1.0"
    queues = factory.LazyFunction(lambda: ["default"])
    concurrency = 10
    heartbeat_seconds = 12.0

    class Meta:
        model = models.Worker


class JobPayloadFactory(DjangoModelFactory):
    job = factory.SubFactory("tests.factories.JobFactory", payload=None)
    arguments = factory.LazyFunction(lambda: {"order_id": 7})

    class Meta:
        model = models.JobPayload


class JobFactory(DjangoModelFactory):
    """A pending job with its payload; ``running=True`` and the other traits put it elsewhere."""

    tenant = factory.SubFactory(TenantFactory)
    queue = factory.SubFactory(QueueFactory)
    job_type = factory.SubFactory(JobTypeFactory)
    created_at = _ago(minutes=1)
    available_at = factory.SelfAttribute("created_at")
    claim_order = factory.LazyAttribute(
        lambda job: job.available_at - timedelta(seconds=job.priority * job.queue.ageing_seconds)
    )
    state = JobState.PENDING
    priority = 0
    payload = factory.RelatedFactory(JobPayloadFactory, factory_related_name="job")

    class Meta:
        model = models.Job
        skip_postgeneration_save = True

    class Params:
        running = factory.Trait(
            state=JobState.RUNNING,
            attempt=1,
            worker=factory.SubFactory(WorkerFactory),
            lease_token=factory.Sequence(lambda number: 1_000_000 + number),
            leased_at=_ago(seconds=1),
            lease_expires_at=_ago(seconds=-59),
        )
        lapsed = factory.Trait(running=True, leased_at=_ago(seconds=90), lease_expires_at=_ago(seconds=30))
        scheduled = factory.Trait(state=JobState.SCHEDULED, available_at=_ago(hours=-1))
        due = factory.Trait(state=JobState.SCHEDULED, available_at=_ago(seconds=1))
        expired = factory.Trait(expires_at=_ago(seconds=1))


class JobProgressFactory(DjangoModelFactory):
    """What the handler of a running job told a few seconds ago."""

    job = factory.SubFactory(JobFactory, running=True, is_tracked=True)
    lease_token = factory.SelfAttribute("job.lease_token")
    done = 420
    total = 1000
    stage = "load"
    updated_at = _ago(seconds=5)

    class Meta:
        model = models.JobProgress


class JobStepFactory(DjangoModelFactory):
    """A step that some attempt of a job has finished; the empty name is its cursor."""

    name = factory.Sequence("step {}".format)
    lease_token = 1
    result = factory.LazyFunction(lambda: {"rows": 7})
    finished_at = _ago(minutes=3)

    class Meta:
        model = models.JobStep


class ArchivedJobFactory(DjangoModelFactory):
    """A completed job; ``dead=True`` makes a dead letter."""

    id = factory.Sequence(lambda number: 2_000_000 + number)
    tenant = factory.SubFactory(TenantFactory)
    queue = factory.SubFactory(QueueFactory)
    job_type = factory.SubFactory(JobTypeFactory)
    created_at = _ago(minutes=2)
    available_at = factory.SelfAttribute("created_at")
    finished_at = _ago(minutes=1)
    state = JobState.COMPLETED
    priority = 0
    attempt = 1
    max_attempts = 3
    deaths = 0
    interruptions = 0
    version = 1
    arguments = factory.LazyFunction(lambda: {"order_id": 7})

    class Meta:
        model = models.ArchivedJob

    class Params:
        dead = factory.Trait(
            state=JobState.DEAD,
            attempt=3,
            error_class="ValueError",
            error_message="no such order",
            fingerprint=42,
        )


class AuditEntryFactory(DjangoModelFactory):
    """What somebody did to a job a minute ago."""

    occurred_at = _ago(minutes=1)
    actor = "ada"
    source = "command"
    action = "job.set_priority"
    target = factory.LazyFunction(lambda: {"jobs": [7]})
    reason = "it cannot wait"
    before = factory.LazyFunction(lambda: {"priority": 0})
    after = factory.LazyFunction(lambda: {"priority": 7})

    class Meta:
        model = models.AuditEntry


class ExecutionFactory(DjangoModelFactory):
    """A completed claim; ``failed=True`` gives it an error."""

    lease_token = factory.Sequence(lambda number: 3_000_000 + number)
    job_id = factory.Sequence(lambda number: 2_000_000 + number)
    tenant = factory.SubFactory(TenantFactory)
    queue = factory.SubFactory(QueueFactory)
    job_type = factory.SubFactory(JobTypeFactory)
    worker = factory.SubFactory(WorkerFactory)
    leased_at = _ago(seconds=61)
    finished_at = _ago(seconds=60)
    run_microseconds = 900_000
    attempt = 1
    outcome = Outcome.COMPLETED

    class Meta:
        model = models.Execution

    class Params:
        failed = factory.Trait(
            outcome=Outcome.FAILED,
            error_class="ValueError",
            error_message="no such order",
            traceback="Traceback (most recent call last):\nValueError: no such order",
            fingerprint=42,
        )
