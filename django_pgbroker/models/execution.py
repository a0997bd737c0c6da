"""One ended claim of a job. Rows are only ever added."""

from django.db import models

from django_pgbroker.domain.states import Outcome
from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.links import link_to
from django_pgbroker.models.querysets import ExecutionQuerySet


class Execution(models.Model):
    """One ended claim.

    The key of the partitioned table is ``(job_id, lease_token, finished_at)``. A token belongs to one claim, so it is
    the primary key here; but only ``job_id`` leads the index, so a row is fetched with ``for_job()`` first.
    """

    lease_token = models.BigIntegerField(primary_key=True)
    job_id = models.BigIntegerField()
    tenant = link_to("Tenant")
    queue = link_to("Queue")
    job_type = link_to("JobType", verbose_name="job type")
    worker = link_to("Worker", null=True, blank=True)
    leased_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    run_microseconds = models.BigIntegerField(null=True, blank=True)
    fingerprint = models.BigIntegerField(null=True, blank=True)
    attempt = models.SmallIntegerField()
    outcome = models.SmallIntegerField(
        choices=[(outcome.value, outcome.label) for outcome in Outcome if outcome is not Outcome.RELEASED]
    )
    reason = models.TextField(null=True, blank=True)
    error_class = models.TextField(null=True, blank=True)
    error_message = models.TextField(null=True, blank=True)
    traceback = models.TextField(null=True, blank=True)

    objects = BrokerManager.from_queryset(ExecutionQuerySet)()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."execution"'
        verbose_name = "execution"
        verbose_name_plural = "executions"

    def __str__(self) -> str:
        return f"attempt {self.attempt} of job {self.job_id} ({Outcome(self.outcome).label})"
