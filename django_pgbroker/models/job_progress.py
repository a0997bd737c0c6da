"""How far a live job is, in a row of its own: it changes every second, and the job's own row does not."""

from django.db import models

from django_pgbroker.domain.progress import Progress
from django_pgbroker.models.broker_manager import BrokerManager


class JobProgress(models.Model):
    """What the handler of one live job told last; the archive keeps it in ``ArchivedJob.progress``."""

    job = models.OneToOneField(
        "Job",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        primary_key=True,
        related_name="progress",
    )
    lease_token = models.BigIntegerField()
    done = models.FloatField()
    total = models.FloatField(null=True, blank=True)
    stage = models.TextField(null=True, blank=True)
    updated_at = models.DateTimeField()

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."job_progress"'
        verbose_name = "progress of a job"
        verbose_name_plural = "progress of jobs"

    def __str__(self) -> str:
        return f"progress of job {self.pk}"

    @property
    def told(self) -> Progress:
        """As the handler told it."""
        return Progress(self.done, self.total, self.stage)
