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
    NotPermitted,
    PayloadTooLarge,
    PgbrokerError,
    QueueNotServed,
    ResultNotStored,
    UnknownJobType,
    UnknownQueue,
    VerbRefused,
    WorkerNotFound,
)
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.stops import JobStopped, StopKind
from django_pgbroker.domain.verb_report import Refusal, RefusalKind, VerbReport
from django_pgbroker.domain.verdicts import Cancel, Retry, Snooze
from django_pgbroker.operations.cancel import CancelResult, cancel_job
from django_pgbroker.operations.enqueue import aenqueue, enqueue
from django_pgbroker.operations.handles import JobHandle
from django_pgbroker.operations.job_types import job
from django_pgbroker.operations.job_verbs import (
    cancel_jobs,
    clone_job,
    discard_jobs,
    edit_job,
    move_jobs,
    postpone_jobs,
    purge_queue,
    redrive_jobs,
    release_jobs,
    retry_jobs,
    run_jobs_now,
    set_job_priorities,
)
from django_pgbroker.operations.queues import QueueChange, pause_queue, resume_queue, set_queue
from django_pgbroker.operations.workers import (
    drain_worker,
    pause_queue_on_worker,
    resize_worker,
    resume_queue_on_worker,
    stop_worker,
)
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
    "JobFilter",
    "JobFinished",
    "JobHandle",
    "JobNotFinished",
    "JobNotFound",
    "JobState",
    "JobStopped",
    "NotPermitted",
    "PayloadTooLarge",
    "PgbrokerError",
    "QueueChange",
    "QueueNotServed",
    "Refusal",
    "RefusalKind",
    "ResultNotStored",
    "Retry",
    "RetryPolicy",
    "Snooze",
    "StopKind",
    "UnknownJobType",
    "UnknownQueue",
    "VerbRefused",
    "VerbReport",
    "WorkerNotFound",
    "aenqueue",
    "cancel_job",
    "cancel_jobs",
    "clone_job",
    "current_job",
    "discard_jobs",
    "drain_worker",
    "edit_job",
    "enqueue",
    "job",
    "move_jobs",
    "pause_queue",
    "pause_queue_on_worker",
    "postpone_jobs",
    "purge_queue",
    "redrive_jobs",
    "release_jobs",
    "resize_worker",
    "resume_queue",
    "resume_queue_on_worker",
    "retry_jobs",
    "run_jobs_now",
    "set_job_priorities",
    "set_queue",
    "stop_worker",
]
