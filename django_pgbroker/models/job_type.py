"""The name of a job type as the database knows it; the handler itself lives in the registry."""

from django.db import models

from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.clock import Clock


class JobType(models.Model):
    """One name that jobs were enqueued under or a process has registered."""

    id = models.BigAutoField(primary_key=True)
    name = models.TextField(unique=True)
    created_at = models.DateTimeField(db_default=Clock())

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."job_type"'
        ordering = ("name",)
        verbose_name = "job type"
        verbose_name_plural = "job types"

    def __str__(self) -> str:
        return self.name
