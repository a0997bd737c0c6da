"""One due instant of a schedule, and what became of it."""

from django.db import models

from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.clock import Clock
from django_pgbroker.models.links import link_to


class ScheduleRun(models.Model):
    """One occurrence of a schedule; the job is a plain id, because it moves to the archive."""

    id = models.BigAutoField(primary_key=True)
    schedule = link_to("Schedule")
    scheduled_for = models.DateTimeField()
    state = models.SmallIntegerField(default=0)
    job_id = models.BigIntegerField(null=True, blank=True)
    run_group = link_to("RunGroup", null=True, blank=True)
    created_at = models.DateTimeField(db_default=Clock())
    details = models.JSONField(null=True, blank=True)

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."schedule_run"'
        verbose_name = "occurrence"
        verbose_name_plural = "occurrences"

    def __str__(self) -> str:
        return f"{self.scheduled_for:%Y-%m-%d %H:%M:%S %Z}"
