"""What operators do to workers, as their screen offers it."""

from typing import Any

from django_pgbroker.admin.act import Act
from django_pgbroker.admin.act_forms import LeftQueueForm, ResizeForm, ServedQueueForm
from django_pgbroker.domain import verbs
from django_pgbroker.operations import workers


def _is_here(worker: Any) -> bool:
    return worker.stopped_at is None


def _takes_jobs(worker: Any) -> bool:
    return _is_here(worker) and not any((worker.drain_requested_at, worker.draining_at, worker.stop_requested_at))


DRAIN = Act(
    verbs.DRAIN_WORKER,
    workers.drain_worker,
    "Drain {}",
    condition=_takes_jobs,
    consequence="It takes no further job, finishes those that run, and ends.",
    is_destructive=True,
    is_mild=True,
)
STOP = Act(
    verbs.STOP_WORKER,
    workers.stop_worker,
    "Stop {}",
    condition=lambda worker: _is_here(worker) and worker.stop_requested_at is None,
    consequence="Its jobs are interrupted, which costs them no attempt, and run again elsewhere.",
    is_destructive=True,
)
RESIZE = Act(verbs.RESIZE_WORKER, workers.resize_worker, "Resize {}", form=ResizeForm, condition=_takes_jobs)
PAUSE_QUEUE = Act(
    verbs.PAUSE_ON_WORKER,
    workers.pause_queue_on_worker,
    "Pause a queue on {}",
    form=ServedQueueForm,
    condition=lambda worker: _takes_jobs(worker) and bool(set(worker.queues) - set(worker.paused_queues)),
    consequence="Other workers go on with this queue.",
)
RESUME_QUEUE = Act(
    verbs.RESUME_ON_WORKER,
    workers.resume_queue_on_worker,
    "Resume a queue on {}",
    form=LeftQueueForm,
    condition=lambda worker: _takes_jobs(worker) and bool(worker.paused_queues),
)

ALL = (RESIZE, PAUSE_QUEUE, RESUME_QUEUE, DRAIN, STOP)
