"""A named lane of jobs, with the pause switch and the sampled depth."""

from django.db import models

from django_pgbroker.domain.verbs import permissions_of
from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.clock import Clock


class Queue(models.Model):
    """One queue. The counts are sampled by a duty at ``sampled_at``; they are not exact at this moment."""

    id = models.BigAutoField(primary_key=True)
    name = models.TextField(unique=True)
    ageing_seconds = models.IntegerField(default=60)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.TextField(null=True, blank=True)
    pause_reason = models.TextField(null=True, blank=True)
    resume_at = models.DateTimeField(null=True, blank=True)
    sampled_at = models.DateTimeField(null=True, blank=True)
    pending_count = models.BigIntegerField(null=True, blank=True)
    scheduled_count = models.BigIntegerField(null=True, blank=True)
    blocked_count = models.BigIntegerField(null=True, blank=True)
    parked_count = models.BigIntegerField(null=True, blank=True)
    running_count = models.BigIntegerField(null=True, blank=True)
    oldest_pending_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Clock())

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."queue"'
        ordering = ("name",)
        permissions = permissions_of("queue")
        verbose_name = "queue"
        verbose_name_plural = "queues"

    def __str__(self) -> str:
        return self.name

    @property
    def is_paused(self) -> bool:
        """Whether claims pass this queue by."""
        return self.paused_at is not None
