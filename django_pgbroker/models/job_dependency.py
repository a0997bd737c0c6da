"""An edge: a job that waits for another job or for a group."""

from django.db import models

from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.clock import Clock
from django_pgbroker.models.links import link_to


class JobDependency(models.Model):
    """One edge. The jobs are plain ids, because either may have moved to the archive."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.BigIntegerField()
    depends_on_job_id = models.BigIntegerField(null=True, blank=True)
    depends_on_group = link_to("RunGroup", null=True, blank=True)
    satisfied = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Clock())

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."job_dependency"'
        verbose_name = "dependency"
        verbose_name_plural = "dependencies"

    def __str__(self) -> str:
        parent = f"group {self.depends_on_group_id}" if self.depends_on_group_id else f"job {self.depends_on_job_id}"
        return f"job {self.job_id} waits for {parent}"
