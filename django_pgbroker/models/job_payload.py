"""What a live job carries, in a row of its own that is read only after the claim."""

from django.db import models

from django_pgbroker.models.broker_manager import BrokerManager


class JobPayload(models.Model):
    """The arguments and headers of one live job."""

    job = models.OneToOneField(
        "Job",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        primary_key=True,
        related_name="payload",
    )
    version = models.SmallIntegerField(default=1)
    arguments = models.JSONField()
    headers = models.JSONField(null=True, blank=True)
    correlation_id = models.TextField(null=True, blank=True)
    created_by = models.TextField(null=True, blank=True)

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."job_payload"'
        verbose_name = "job payload"
        verbose_name_plural = "job payloads"

    def __str__(self) -> str:
        return f"payload of job {self.pk}"
