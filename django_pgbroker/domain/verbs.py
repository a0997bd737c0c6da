"""Every act of an operator, in one list: its name in the audit, its permission, the states that it applies to."""

from dataclasses import dataclass
from typing import Any

from django_pgbroker.domain.roles import Role
from django_pgbroker.domain.states import JobState

_WAITING = frozenset({JobState.PENDING, JobState.SCHEDULED, JobState.BLOCKED, JobState.PARKED})
_FAILED = frozenset({JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED})


_NONE: frozenset[JobState] = frozenset()


@dataclass(frozen=True)
class Verb:
    """One act.

    Args:
        name: in the audit log, as in ``job.cancel``.
        label: what a button says.
        done: what a message says after it: "3 jobs *cancelled*".
        permission: codename of the Django permission of this app that allows it.
        role: the least role that has it by default (requirements B, section 24).
        states: from which states a job can be taken by it; empty for verbs of queues and workers.
        by_filter: from which of them a filter can take jobs; by default from all, empty for a verb on one job.
        needs_reason: whether the admin asks for a reason.
    """

    name: str
    label: str
    done: str
    permission: str
    role: Role
    states: frozenset[JobState] = frozenset()
    by_filter: frozenset[JobState] | None = None
    needs_reason: bool = False

    @property
    def subject(self) -> str:
        """What it acts on: ``job``, ``queue``, ``worker`` or ``schedule``."""
        return self.name.partition(".")[0]

    @property
    def filter_states(self) -> frozenset[JobState]:
        """From which states a filter can take jobs."""
        return self.states if self.by_filter is None else self.by_filter

    @property
    def matched_states(self) -> frozenset[JobState]:
        """What a filter without states means: all that wait or run, or else the dead letters."""
        return frozenset({JobState.DEAD}) if JobState.DEAD in self.filter_states else self.filter_states

    def applies_to(self, state: JobState) -> bool:
        """Whether a job in this state can be taken by it."""
        return state in self.states


CANCEL_JOB = Verb(
    "job.cancel", "Cancel", "cancelled", "cancel_job", Role.OPERATOR, _WAITING | {JobState.RUNNING}, needs_reason=True
)
RUN_JOB_NOW = Verb("job.run_now", "Run now", "made due", "run_job_now", Role.OPERATOR, frozenset({JobState.SCHEDULED}))
#: By a filter it takes the retries that wait: all the dead letters at once are for those who may redrive.
RETRY_JOB = Verb(
    "job.retry",
    "Retry now",
    "sent back to be tried again",
    "retry_job",
    Role.OPERATOR,
    _FAILED | {JobState.SCHEDULED},
    by_filter=frozenset({JobState.SCHEDULED}),
)
POSTPONE_JOB = Verb(
    "job.postpone",
    "Postpone",
    "postponed",
    "postpone_job",
    Role.OPERATOR,
    frozenset({JobState.PENDING, JobState.SCHEDULED}),
)
SET_JOB_PRIORITY = Verb(
    "job.set_priority", "Change priority", "given another priority", "set_job_priority", Role.OPERATOR, _WAITING
)
MOVE_JOB = Verb("job.move", "Move to a queue", "moved", "move_job", Role.OPERATOR, _WAITING)
RELEASE_JOB = Verb("job.release", "Release", "released", "release_job", Role.OPERATOR, frozenset({JobState.PARKED}))
EDIT_JOB = Verb(
    "job.edit", "Edit arguments", "edited", "edit_job", Role.ADMIN, _WAITING | {JobState.DEAD}, by_filter=_NONE
)
CLONE_JOB = Verb("job.clone", "Clone", "cloned", "clone_job", Role.ADMIN, frozenset(JobState), by_filter=_NONE)
ENQUEUE_JOB = Verb("job.enqueue", "Enqueue", "enqueued", "enqueue_job", Role.ADMIN)
REDRIVE_JOB = Verb("job.redrive", "Redrive", "redriven", "redrive_job", Role.ADMIN, _FAILED)
DISCARD_JOB = Verb(
    "job.discard", "Discard", "discarded", "discard_job", Role.ADMIN, frozenset({JobState.DEAD}), needs_reason=True
)

PAUSE_QUEUE = Verb("queue.pause", "Pause", "paused", "pause_queue", Role.OPERATOR, needs_reason=True)
RESUME_QUEUE = Verb("queue.resume", "Resume", "resumed", "pause_queue", Role.OPERATOR)
SET_QUEUE = Verb("queue.set", "Change settings", "changed", "set_queue", Role.ADMIN)
PURGE_QUEUE = Verb(
    "queue.purge", "Purge", "purged", "purge_queue", Role.ADMIN, frozenset({JobState.PENDING}), needs_reason=True
)

DRAIN_WORKER = Verb("worker.drain", "Drain", "asked to drain", "drain_worker", Role.OPERATOR)
STOP_WORKER = Verb("worker.stop", "Stop", "asked to stop", "stop_worker", Role.ADMIN, needs_reason=True)
RESIZE_WORKER = Verb("worker.resize", "Resize", "asked to change its size", "resize_worker", Role.OPERATOR)
PAUSE_ON_WORKER = Verb(
    "worker.pause_queue", "Pause a queue here", "asked to leave the queue", "pause_queue_on_worker", Role.OPERATOR
)
RESUME_ON_WORKER = Verb(
    "worker.resume_queue", "Resume a queue here", "asked to take the queue up", "pause_queue_on_worker", Role.OPERATOR
)

#: In the order in which screens offer them.
VERBS = (
    CANCEL_JOB, RUN_JOB_NOW, RETRY_JOB, POSTPONE_JOB, SET_JOB_PRIORITY, MOVE_JOB, RELEASE_JOB, EDIT_JOB, CLONE_JOB,
    ENQUEUE_JOB, REDRIVE_JOB, DISCARD_JOB, PAUSE_QUEUE, RESUME_QUEUE, SET_QUEUE, PURGE_QUEUE, DRAIN_WORKER, STOP_WORKER,
    RESIZE_WORKER, PAUSE_ON_WORKER, RESUME_ON_WORKER,
)  # fmt: skip


def find_verb(name: str) -> Verb:
    """The verb of this name, such as ``job.cancel``.

    Raises:
        KeyError: there is none.
    """
    return _BY_NAME[name]


_BY_NAME = {verb.name: verb for verb in VERBS}


def permissions_of(subject: str) -> list[tuple[str, Any]]:
    """Codename and name of the permissions of the verbs on one subject, as ``Meta.permissions`` wants them."""
    found = {verb.permission: f"Can {verb.permission.replace('_', ' ')}" for verb in VERBS if verb.subject == subject}
    return list(found.items())
