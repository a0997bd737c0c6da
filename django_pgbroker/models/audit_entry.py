"""What an operator did, from the admin, a command or code."""

from django.db import models

from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.clock import Clock
from django_pgbroker.models.links import link_to


class AuditEntry(models.Model):
    """One act of an operator; written in the transaction of the act."""

    id = models.BigAutoField(primary_key=True)
    occurred_at = models.DateTimeField(db_default=Clock())
    tenant = link_to("Tenant", null=True, blank=True)
    actor = models.TextField()
    source = models.TextField()
    action = models.TextField()
    target = models.JSONField(default=dict)
    reason = models.TextField(null=True, blank=True)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    count = models.BigIntegerField(default=1)

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."audit_entry"'
        verbose_name = "audit entry"
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"
