"""Read everything about one job, wherever it stands. For ``pgbroker_jobs show``."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import JobNotFound
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, Execution, Job, JobPayload, JobProgress, JobStep
from django_pgbroker.models.clock import Clock
from django_pgbroker.operations.audit_log import AuditQuery, read_audit

#: So many executions, steps and acts are read with one job.
SHOWN_ROWS = 50


@dataclass(frozen=True, slots=True)
class JobDetail:
    """Everything about one job.

    Args:
        job: a ``Job`` or an ``ArchivedJob``, with its names.
        read_at: the database's clock.
        carrier: the row with its payload: a ``JobPayload``, or the archived job itself.
        progress: what its handler told last, as ``done``, ``total``, ``stage``; or None.
        executions: newest first.
        steps: of a live job or a dead letter, in the order in which they ended; the one without a name is the cursor.
        acts: entries of the audit log, newest first.
    """

    job: Any
    read_at: datetime
    carrier: Any
    progress: Mapping[str, Any] | None
    executions: tuple[Any, ...]
    steps: tuple[Any, ...]
    acts: tuple[Any, ...]

    @property
    def state(self) -> JobState:
        """Where it stands."""
        return JobState(self.job.state)


def read_job(job_id: int, *, using: str | None = None) -> JobDetail:
    """Everything about one job, live or finished.

    Raises:
        JobNotFound: there is none.
        django.db.DatabaseError: as the server answered.
    """
    database = using or get_settings().database
    job = _find_job(job_id, database)
    is_live = isinstance(job, Job)
    executions = Execution.objects.using(database).for_job(job_id).select_related("worker").order_by("-lease_token")
    steps = JobStep.objects.using(database).filter(job_id=job_id).order_by("finished_at", "name")
    return JobDetail(
        job=job,
        read_at=job.read_at,
        carrier=JobPayload.objects.using(database).filter(pk=job_id).first() if is_live else job,
        progress=_read_progress(job_id, database) if is_live else job.progress,
        executions=tuple(executions[:SHOWN_ROWS]),
        steps=tuple(steps[:SHOWN_ROWS]),
        acts=read_audit(AuditQuery(job_id=job_id), limit=SHOWN_ROWS, using=database).rows,
    )


def _find_job(job_id: int, database: str) -> Any:
    """A job may go from one table to the other between two looks, and come back by a redrive."""
    for model in (Job, ArchivedJob, Job):
        names = ("queue", "job_type", "tenant", "worker") if model is Job else ("queue", "job_type", "tenant")
        rows = model._default_manager.using(database).filter(pk=job_id)
        if (job := rows.select_related(*names).annotate(read_at=Clock()).first()) is not None:
            return job
    raise JobNotFound(f"there is no job {job_id} in database {database!r}: never committed, or its history is pruned")


def _read_progress(job_id: int, database: str) -> dict[str, Any] | None:
    told = JobProgress.objects.using(database).filter(pk=job_id).first()
    return None if told is None else {"done": told.done, "total": told.total, "stage": told.stage}
