"""The definition of recurring work."""

from django.db import models

from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.clock import Clock
from django_pgbroker.models.links import link_to


class Schedule(models.Model):
    """One recurring definition: a cron expression, an interval or one instant, in a time zone."""

    id = models.BigAutoField(primary_key=True)
    tenant = link_to("Tenant")
    queue = link_to("Queue")
    job_type = link_to("JobType", verbose_name="job type")
    name = models.TextField()
    cron_expression = models.TextField(null=True, blank=True)
    interval_seconds = models.BigIntegerField(null=True, blank=True)
    once_at = models.DateTimeField(null=True, blank=True)
    time_zone = models.TextField()
    is_enabled = models.BooleanField(default=True)
    is_declared = models.BooleanField(default=False)
    priority = models.SmallIntegerField(default=0)
    arguments = models.JSONField(default=dict)
    template = models.JSONField(null=True, blank=True)
    misfire_policy = models.SmallIntegerField(default=0)
    gap_policy = models.SmallIntegerField(default=0)
    fold_policy = models.SmallIntegerField(default=0)
    catch_up_limit = models.IntegerField(null=True, blank=True)
    catch_up_seconds = models.BigIntegerField(null=True, blank=True)
    next_run_at = models.DateTimeField(null=True, blank=True)
    last_run_at = models.DateTimeField(null=True, blank=True)
    disabled_reason = models.TextField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Clock())
    updated_at = models.DateTimeField(db_default=Clock())

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."schedule"'
        verbose_name = "schedule"
        verbose_name_plural = "schedules"

    def __str__(self) -> str:
        return self.name
