"""Jobs with a common fate."""

from django.db import models

from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.clock import Clock
from django_pgbroker.models.links import link_to


class RunGroup(models.Model):
    """One group of jobs and its counters."""

    id = models.BigAutoField(primary_key=True)
    tenant = link_to("Tenant")
    name = models.TextField()
    state = models.SmallIntegerField(default=0)
    completion_policy = models.SmallIntegerField(default=0)
    created_at = models.DateTimeField(db_default=Clock())
    created_by = models.TextField(null=True, blank=True)
    sealed_at = models.DateTimeField(null=True, blank=True)
    seal_by = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    member_count = models.BigIntegerField(default=0)
    completed_count = models.BigIntegerField(default=0)
    failed_count = models.BigIntegerField(default=0)

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."run_group"'
        verbose_name = "run group"
        verbose_name_plural = "run groups"

    def __str__(self) -> str:
        return self.name
