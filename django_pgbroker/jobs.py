"""The broker's own job types; found like those of every app."""

from django_pgbroker.operations.bulk_job import BULK_JOB

__all__ = ["BULK_JOB"]
