"""The owner of jobs."""

from django.db import models

from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.clock import Clock


class Tenant(models.Model):
    """One owner of jobs; every job has one, and a tenant named ``default`` always exists."""

    id = models.BigAutoField(primary_key=True)
    name = models.TextField(unique=True)
    created_at = models.DateTimeField(db_default=Clock())

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."tenant"'
        ordering = ("name",)
        verbose_name = "tenant"
        verbose_name_plural = "tenants"

    def __str__(self) -> str:
        return self.name
