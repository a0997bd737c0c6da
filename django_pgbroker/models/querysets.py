"""Reads that screens and commands share."""

from typing import Any, Self

from django.db import models


class JobQuerySet(models.QuerySet[Any, Any]):
    """Reads of live jobs."""

    def with_names(self) -> Self:
        """Fetch queue, job type and tenant in the same query."""
        return self.select_related("queue", "job_type", "tenant")


class ArchivedJobQuerySet(models.QuerySet[Any, Any]):
    """Reads of finished jobs."""

    def with_names(self) -> Self:
        """Fetch queue, job type and tenant in the same query."""
        return self.select_related("queue", "job_type", "tenant")


class ExecutionQuerySet(models.QuerySet[Any, Any]):
    """Reads of ended claims."""

    def with_names(self) -> Self:
        """Fetch queue, job type and worker in the same query."""
        return self.select_related("queue", "job_type", "worker")

    def for_job(self, job_id: int) -> Self:
        """The claims of one job, oldest first; the only cheap way to a row."""
        return self.filter(job_id=job_id).order_by("lease_token")


class WorkerQuerySet(models.QuerySet[Any, Any]):
    """Reads of worker processes."""

    def running(self) -> Self:
        """Workers that have neither stopped nor been found dead."""
        return self.filter(stopped_at__isnull=True)
