"""PostgreSQL as a job broker for Django. The public names; none of them imports a model."""

from django_pgbroker.domain.backoff import Constant, Exponential, RetryPolicy
from django_pgbroker.domain.errors import (
    ConfigurationError,
    DuplicateJobType,
    InvalidArguments,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    JobFailed,
    JobFinished,
    JobNotFinished,
    JobNotFound,
    PayloadTooLarge,
    PgbrokerError,
    ResultNotStored,
    UnknownJobType,
    UnknownQueue,
)
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.stops import JobStopped, StopKind
from django_pgbroker.domain.verdicts import Cancel, Retry, Snooze
from django_pgbroker.operations.cancel import CancelResult, cancel_job
from django_pgbroker.operations.enqueue import aenqueue, enqueue
from django_pgbroker.operations.handles import JobHandle
from django_pgbroker.operations.job_types import job
from django_pgbroker.operations.queues import pause_queue, resume_queue
from django_pgbroker.store.errors import BrokerDatabaseError, EnqueueConflict
from django_pgbroker.worker.context import JobContext, current_job

__all__ = [
    "BrokerDatabaseError",
    "Cancel",
    "CancelResult",
    "ConfigurationError",
    "Constant",
    "DuplicateJobType",
    "EnqueueConflict",
    "Exponential",
    "InvalidArguments",
    "InvalidName",
    "InvalidOption",
    "InvalidPayload",
    "JobContext",
    "JobFailed",
    "JobFinished",
    "JobHandle",
    "JobNotFinished",
    "JobNotFound",
    "JobState",
    "JobStopped",
    "PayloadTooLarge",
    "PgbrokerError",
    "ResultNotStored",
    "Retry",
    "RetryPolicy",
    "Snooze",
    "StopKind",
    "UnknownJobType",
    "UnknownQueue",
    "aenqueue",
    "cancel_job",
    "current_job",
    "enqueue",
    "job",
    "pause_queue",
    "resume_queue",
]
