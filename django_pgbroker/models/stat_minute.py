"""Counters per minute with log-scale histograms of wait and run time."""

from django.db import models

from django_pgbroker.domain.states import Outcome
from django_pgbroker.models.broker_manager import BrokerManager
from django_pgbroker.models.links import link_to


class StatMinute(models.Model):
    """Executions of one minute, worker, queue, job type, outcome and pair of buckets.

    A bucket is the base-two logarithm of milliseconds. Read it with aggregates; the admin cannot show a composite key.
    """

    pk = models.CompositePrimaryKey(
        "minute", "worker_id", "queue_id", "job_type_id", "outcome", "wait_bucket", "run_bucket"
    )
    minute = models.DateTimeField()
    worker = link_to("Worker")
    queue = link_to("Queue")
    job_type = link_to("JobType", verbose_name="job type")
    outcome = models.SmallIntegerField(choices=[(outcome.value, outcome.label) for outcome in Outcome])
    wait_bucket = models.SmallIntegerField()
    run_bucket = models.SmallIntegerField()
    jobs = models.BigIntegerField()
    wait_microseconds = models.BigIntegerField()
    run_microseconds = models.BigIntegerField()

    objects = BrokerManager()

    class Meta:
        managed = False
        required_db_vendor = "postgresql"
        db_table = '"pgbroker"."stat_minute"'
        verbose_name = "minute of statistics"
        verbose_name_plural = "minutes of statistics"

    def __str__(self) -> str:
        return f"{self.jobs} jobs {Outcome(self.outcome).label} in {self.minute:%Y-%m-%d %H:%M}"
