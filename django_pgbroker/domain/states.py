"""States of a job, outcomes of an execution, and every legal move between states. The one place that knows them."""

from enum import IntEnum


class JobState(IntEnum):
    """Where a job stands. Values below 10 live in ``pgbroker.job``, the others in ``pgbroker.archived_job``."""

    PENDING = 0
    RUNNING = 1
    SCHEDULED = 2
    BLOCKED = 3
    PARKED = 4
    COMPLETED = 10
    CANCELLED = 11
    EXPIRED = 12
    DEAD = 13

    @property
    def label(self) -> str:
        """The state as a word, the same in commands, admin and docs."""
        return self.name.lower()

    def __str__(self) -> str:
        return self.label

    @property
    def is_finished(self) -> bool:
        """Whether the job has left the live table."""
        return self >= JobState.COMPLETED


class Outcome(IntEnum):
    """How one claim of a job ended. RELEASED (handed back unstarted) leaves no execution."""

    RELEASED = 0
    COMPLETED = 1
    FAILED = 2
    TIMED_OUT = 3
    SNOOZED = 4
    CANCELLED = 5
    LOST = 6
    INTERRUPTED = 7

    @property
    def label(self) -> str:
        """The outcome as a word, the same in commands, admin and docs."""
        return self.name.lower()

    def __str__(self) -> str:
        return self.label


class ParkedReason(IntEnum):
    """What a parked job waits for. ``job.parked_on`` names it: a key, or the negated job type for UNKNOWN_TYPE."""

    LIMIT = 1
    RATE = 2
    SEQUENCE = 3
    UNKNOWN_TYPE = 4
    QUARANTINE = 5
    BREAKER = 6

    @property
    def label(self) -> str:
        """The reason as words, the same in commands, admin and docs."""
        return self.name.lower().replace("_", " ")


LIVE_STATES = frozenset(state for state in JobState if not state.is_finished)
FINISHED_STATES = frozenset(state for state in JobState if state.is_finished)

#: Outcomes that give the attempt back: the handler never decided anything about the work.
UNCOUNTED_OUTCOMES = frozenset({Outcome.RELEASED, Outcome.SNOOZED, Outcome.INTERRUPTED})

_ENDS_UNRUN = frozenset({JobState.CANCELLED, JobState.EXPIRED})

#: Every legal move. A state that is not a key here is final.
TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset({JobState.RUNNING, JobState.SCHEDULED, JobState.PARKED}) | _ENDS_UNRUN,
    JobState.SCHEDULED: frozenset({JobState.PENDING}) | _ENDS_UNRUN,
    JobState.BLOCKED: frozenset({JobState.PENDING, JobState.SCHEDULED}) | _ENDS_UNRUN,
    JobState.PARKED: frozenset({JobState.PENDING}) | _ENDS_UNRUN,
    JobState.RUNNING: frozenset(
        {JobState.PENDING, JobState.SCHEDULED, JobState.COMPLETED, JobState.CANCELLED, JobState.DEAD}
    ),
    # by an operator alone: a redrive keeps the identity of the job, a discard ends its stay among the dead letters
    JobState.DEAD: frozenset({JobState.PENDING, JobState.CANCELLED}),
    JobState.CANCELLED: frozenset({JobState.PENDING}),
    JobState.EXPIRED: frozenset({JobState.PENDING}),
}


def is_legal(origin: JobState, target: JobState) -> bool:
    """Whether a job may move from ``origin`` to ``target``."""
    return target in TRANSITIONS.get(origin, frozenset())
