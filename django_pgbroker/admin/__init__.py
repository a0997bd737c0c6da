"""The screens of the broker in Django's admin, one file each; importing this registers them."""

from django_pgbroker.admin.archived_job import ArchivedJobScreen
from django_pgbroker.admin.audit_entry import AuditEntryScreen
from django_pgbroker.admin.dead_letter import DeadLetterScreen
from django_pgbroker.admin.execution import ExecutionScreen
from django_pgbroker.admin.job import JobScreen
from django_pgbroker.admin.queue import QueueScreen
from django_pgbroker.admin.worker import WorkerScreen

__all__ = [
    "ArchivedJobScreen",
    "AuditEntryScreen",
    "DeadLetterScreen",
    "ExecutionScreen",
    "JobScreen",
    "QueueScreen",
    "WorkerScreen",
]
