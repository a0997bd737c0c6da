"""What operators do to jobs, as the screens of live and of finished jobs offer it."""

from django_pgbroker.admin.act import Act
from django_pgbroker.admin.act_forms import MoveForm, PlainRedriveForm, PostponeForm, PriorityForm, RedriveForm
from django_pgbroker.domain import verbs
from django_pgbroker.operations import job_verbs

CANCEL = Act(
    verbs.CANCEL_JOB,
    job_verbs.cancel_jobs,
    "Cancel {}",
    consequence="What waits ends at once. What runs is asked to end, and its worker sees to it.",
    is_destructive=True,
    is_bulk=True,
)
RUN_NOW = Act(verbs.RUN_JOB_NOW, job_verbs.run_jobs_now, "Run {} now", is_bulk=True)
RETRY = Act(verbs.RETRY_JOB, job_verbs.retry_jobs, "Retry {} now", is_bulk=True)
POSTPONE = Act(verbs.POSTPONE_JOB, job_verbs.postpone_jobs, "Postpone {}", form=PostponeForm, is_bulk=True)
SET_PRIORITY = Act(
    verbs.SET_JOB_PRIORITY, job_verbs.set_job_priorities, "Change the priority of {}", form=PriorityForm, is_bulk=True
)
MOVE = Act(verbs.MOVE_JOB, job_verbs.move_jobs, "Move {} to another queue", form=MoveForm, is_bulk=True)
RELEASE = Act(
    verbs.RELEASE_JOB,
    job_verbs.release_jobs,
    "Release {}",
    consequence="A job whose reason to be parked still holds may be parked again.",
    is_bulk=True,
)
REDRIVE = Act(
    verbs.REDRIVE_JOB,
    job_verbs.redrive_jobs,
    "Redrive {}",
    form=PlainRedriveForm,
    bulk_form=RedriveForm,
    consequence="The same jobs go back to their queues, with their history.",
    is_bulk=True,
)
DISCARD = Act(
    verbs.DISCARD_JOB,
    job_verbs.discard_jobs,
    "Discard {}",
    consequence="They count as cancelled from then on, and go with the history when it is old.",
    is_destructive=True,
    is_bulk=True,
)

ON_LIVE = (RUN_NOW, RETRY, POSTPONE, SET_PRIORITY, MOVE, RELEASE, CANCEL)
ON_FINISHED = (REDRIVE, RETRY, DISCARD)
