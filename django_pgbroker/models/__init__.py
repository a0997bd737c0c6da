"""The schema's face: one unmanaged model a table, for reads, the admin and cold rows. The DDL is in ``migrations``."""

from django_pgbroker.models.archived_job import ArchivedJob
from django_pgbroker.models.audit_entry import AuditEntry
from django_pgbroker.models.dead_letter import DeadLetter
from django_pgbroker.models.execution import Execution
from django_pgbroker.models.job import Job
from django_pgbroker.models.job_dependency import JobDependency
from django_pgbroker.models.job_payload import JobPayload
from django_pgbroker.models.job_progress import JobProgress
from django_pgbroker.models.job_step import JobStep
from django_pgbroker.models.job_type import JobType
from django_pgbroker.models.queue import Queue
from django_pgbroker.models.run_group import RunGroup
from django_pgbroker.models.schedule import Schedule
from django_pgbroker.models.schedule_run import ScheduleRun
from django_pgbroker.models.stat_minute import StatMinute
from django_pgbroker.models.tenant import Tenant
from django_pgbroker.models.worker import Worker

__all__ = [
    "ArchivedJob",
    "AuditEntry",
    "DeadLetter",
    "Execution",
    "Job",
    "JobDependency",
    "JobPayload",
    "JobProgress",
    "JobStep",
    "JobType",
    "Queue",
    "RunGroup",
    "Schedule",
    "ScheduleRun",
    "StatMinute",
    "Tenant",
    "Worker",
]
