"""What a job remembers from one attempt to the next: steps that are done, and its cursor."""

from django.db import models

from django_pgbroker.models.broker_manager import BrokerManager


class JobStep(models.Model):
    """One finished step of a live job or a dead letter; the row with the empty name is its cursor."""

    pk = models.CompositePrimaryKey("job_id", "name")
    job_id = models.BigIntegerField()
    name = models.TextField(blank=True)
    lease_token = models.BigIntegerField()
    result = models.JSONField()
    finished_at = models.DateTimeField()

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."job_step"'
        verbose_name = "step of a job"
        verbose_name_plural = "steps of jobs"

    def __str__(self) -> str:
        return f"step {self.name!r} of job {self.job_id}" if self.name else f"cursor of job {self.job_id}"
