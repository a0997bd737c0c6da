"""The presence of a worker process, and the orders it was given."""

from django.db import models

from django_pgbroker.domain.verbs import permissions_of
from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.clock import Clock
from django_pgbroker.models.identifiers import IdentifierList
from django_pgbroker.models.querysets import WorkerQuerySet


class Worker(models.Model):
    """One worker process, from its start until it stopped or was found dead."""

    id = models.BigAutoField(primary_key=True)
    name = models.TextField()
    hostname = models.TextField()
    process_id = models.IntegerField()
    version = models.TextField()
    queues = models.JSONField()
    job_type_ids = IdentifierList(default=list)
    concurrency = models.IntegerField()
    running_count = models.IntegerField(default=0)
    started_at = models.DateTimeField(db_default=Clock())
    heartbeat_at = models.DateTimeField(db_default=Clock())
    heartbeat_seconds = models.FloatField()
    clock_skew_seconds = models.FloatField(null=True, blank=True)
    ordered_concurrency = models.IntegerField(null=True, blank=True)
    paused_queues = models.JSONField(default=list)
    drain_requested_at = models.DateTimeField(null=True, blank=True)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    draining_at = models.DateTimeField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    stop_reason = models.TextField(null=True, blank=True)

    objects = BrokerManager.from_queryset(WorkerQuerySet)()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."worker"'
        permissions = permissions_of("worker")
        verbose_name = "worker"
        verbose_name_plural = "workers"

    def __str__(self) -> str:
        return self.name
