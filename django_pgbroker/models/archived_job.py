"""A finished job with its payload and its result or error."""

from django.db import models

from django_pgbroker.domain.states import FINISHED_STATES, JobState
from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.links import link_to
from django_pgbroker.models.querysets import ArchivedJobQuerySet


class ArchivedJob(models.Model):
    """One finished job.

    The key of the partitioned table is ``(id, state, finished_at)``; ``id`` alone is unique because a job is archived
    once. A lookup by id probes every partition: bound ``finished_at`` too where many rows are read.
    """

    id = models.BigIntegerField(primary_key=True)
    tenant = link_to("Tenant")
    queue = link_to("Queue")
    job_type = link_to("JobType", verbose_name="job type")
    run_group = link_to("RunGroup", null=True, blank=True)
    created_at = models.DateTimeField()
    available_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    fingerprint = models.BigIntegerField(null=True, blank=True)
    state = models.SmallIntegerField(choices=[(state.value, state.label) for state in sorted(FINISHED_STATES)])
    priority = models.SmallIntegerField()
    attempt = models.SmallIntegerField()
    max_attempts = models.SmallIntegerField()
    deaths = models.SmallIntegerField()
    interruptions = models.SmallIntegerField()
    version = models.SmallIntegerField()
    arguments = models.JSONField()
    headers = models.JSONField(null=True, blank=True)
    result = models.JSONField(null=True, blank=True)
    correlation_id = models.TextField(null=True, blank=True)
    created_by = models.TextField(null=True, blank=True)
    reason = models.TextField(null=True, blank=True)
    error_class = models.TextField(null=True, blank=True)
    error_message = models.TextField(null=True, blank=True)
    progress = models.JSONField(null=True, blank=True)
    timeout_seconds = models.IntegerField(null=True, blank=True)

    objects = BrokerManager.from_queryset(ArchivedJobQuerySet)()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."archived_job"'
        verbose_name = "archived job"
        verbose_name_plural = "archived jobs"

    def __str__(self) -> str:
        return f"job {self.pk} ({JobState(self.state).label})"
