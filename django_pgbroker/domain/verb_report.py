"""What came of a verb: how many jobs it changed, and which it could not and why. Returned by every verb on jobs."""

from dataclasses import dataclass
from enum import Enum

#: So many ids and refusals are named; all are counted.
MOST_NAMED = 1_000


class RefusalKind(Enum):
    """Why a verb did not change a job."""

    NOT_FOUND = "not found"
    #: The job has ended, and the verb is for jobs that have not, or have ended otherwise.
    FINISHED = "finished"
    #: The job is in a live state that the verb cannot take it from.
    WRONG_STATE = "wrong state"
    #: The user may not do this to this queue or tenant.
    NOT_PERMITTED = "not permitted"
    #: There was nothing to change, or the change would be of no use.
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One job that a verb did not change, and why, in words."""

    job_id: int
    kind: RefusalKind
    why: str


@dataclass(frozen=True, slots=True)
class VerbReport:
    """What a verb did.

    Args:
        verb: its name, as in ``job.cancel``.
        changed: how many jobs it changed.
        requested: how many of those run on and were asked to end (only for a cancel).
        ids: the first of the changed ones (``MOST_NAMED``).
        created: ids of new jobs (only for a clone).
        refused: how many it did not change although they were meant.
        refusals: the first of those (``MOST_NAMED``).
        background_job_id: the broker's own job that does it, where it is too much to do at once.
        obstacle: why nobody would carry that job out now, in words; empty where somebody will.
    """

    verb: str
    changed: int = 0
    requested: int = 0
    ids: tuple[int, ...] = ()
    created: tuple[int, ...] = ()
    refused: int = 0
    refusals: tuple[Refusal, ...] = ()
    background_job_id: int | None = None
    obstacle: str = ""

    def __add__(self, other: "VerbReport") -> "VerbReport":
        """Both together."""
        return VerbReport(
            self.verb,
            self.changed + other.changed,
            self.requested + other.requested,
            (self.ids + other.ids)[:MOST_NAMED],
            (self.created + other.created)[:MOST_NAMED],
            self.refused + other.refused,
            (self.refusals + other.refusals)[:MOST_NAMED],
            self.background_job_id or other.background_job_id,
            self.obstacle or other.obstacle,
        )
