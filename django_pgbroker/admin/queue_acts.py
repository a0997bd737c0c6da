"""What operators do to queues, as their screen offers it."""

from django_pgbroker.admin.act import Act
from django_pgbroker.admin.act_forms import AgeingForm, PauseForm
from django_pgbroker.domain import verbs
from django_pgbroker.operations import job_verbs, queues

PAUSE = Act(
    verbs.PAUSE_QUEUE,
    queues.pause_queue,
    "Pause {}",
    form=PauseForm,
    condition=lambda queue: not queue.is_paused,
    consequence="Workers take no further job from it; those that run go on.",
)
RESUME = Act(verbs.RESUME_QUEUE, queues.resume_queue, "Resume {}", condition=lambda queue: queue.is_paused)
SET = Act(
    verbs.SET_QUEUE,
    queues.set_queue,
    "Change the settings of {}",
    form=AgeingForm,
    condition=lambda _: True,
    consequence="The jobs that wait are brought into the new order.",
)
PURGE = Act(
    verbs.PURGE_QUEUE,
    job_verbs.purge_queue,
    "Purge {}",
    condition=lambda _: True,
    consequence="All its pending jobs are cancelled. What is scheduled, blocked, parked or running stays.",
    is_destructive=True,
)

ALL = (PAUSE, RESUME, SET, PURGE)
