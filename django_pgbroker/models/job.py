"""A live job: the narrow row that claims and acknowledges work on."""

from django.db import models

from django_pgbroker.domain.states import LIVE_STATES, JobState
from django_pgbroker.domain.verbs import permissions_of
from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.identifiers import IdentifierList
from django_pgbroker.models.links import link_to
from django_pgbroker.models.never import TimestampOrNever
from django_pgbroker.models.querysets import JobQuerySet


class Job(models.Model):
    """One request to run a job type, until it is finished; then it is an :class:`ArchivedJob` with the same id."""

    id = models.BigAutoField(primary_key=True)
    tenant = link_to("Tenant")
    queue = link_to("Queue")
    job_type = link_to("JobType", verbose_name="job type")
    created_at = models.DateTimeField()
    available_at = models.DateTimeField()
    claim_order = models.DateTimeField()
    expires_at = TimestampOrNever(default=None, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)
    lease_token = models.BigIntegerField(null=True, blank=True)
    leased_at = models.DateTimeField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    worker = link_to("Worker", null=True, blank=True)
    run_group = link_to("RunGroup", null=True, blank=True)
    sequence_id = models.BigIntegerField(null=True, blank=True)
    parked_on = models.BigIntegerField(null=True, blank=True)
    fair_tenant_id = models.BigIntegerField(null=True, blank=True)
    timeout_seconds = models.IntegerField(null=True, blank=True)
    unmet = models.IntegerField(default=0)
    state = models.SmallIntegerField(choices=[(state.value, state.label) for state in sorted(LIVE_STATES)])
    priority = models.SmallIntegerField(default=0)
    attempt = models.SmallIntegerField(default=0)
    max_attempts = models.SmallIntegerField(default=3)
    lapses = models.SmallIntegerField(default=0)
    deaths = models.SmallIntegerField(default=0)
    interruptions = models.SmallIntegerField(default=0)
    parked_reason = models.SmallIntegerField(null=True, blank=True)
    limit_ids = IdentifierList(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.TextField(null=True, blank=True)
    cancel_reason = models.TextField(null=True, blank=True)
    is_tracked = models.BooleanField(default=False)

    objects = BrokerManager.from_queryset(JobQuerySet)()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."job"'
        permissions = permissions_of("job")
        verbose_name = "job"
        verbose_name_plural = "jobs"

    def __str__(self) -> str:
        return f"job {self.pk} ({JobState(self.state).label})"
