"""What came of a verb: how many it changed, and which it could not and why. Returned by every bulk verb."""

from dataclasses import dataclass

#: So many ids and refusals are named; all are counted.
MOST_NAMED = 1_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """One job that a verb did not change, and why, in words."""

    job_id: int
    why: str


@dataclass(frozen=True, slots=True)
class VerbReport:
    """What a verb did.

    Args:
        verb: its name, as in ``job.cancel``.
        changed: how many jobs it changed.
        ids: the first of them (``MOST_NAMED``).
        refused: how many it was asked for by id and did not change.
        refusals: the first of those (``MOST_NAMED``).
        background_job_id: the broker's own job that does it, where it is too much to do at once.
    """

    verb: str
    changed: int = 0
    ids: tuple[int, ...] = ()
    refused: int = 0
    refusals: tuple[Refusal, ...] = ()
    background_job_id: int | None = None

    def __add__(self, other: "VerbReport") -> "VerbReport":
        """Both together."""
        return VerbReport(
            self.verb,
            self.changed + other.changed,
            (self.ids + other.ids)[:MOST_NAMED],
            self.refused + other.refused,
            (self.refusals + other.refusals)[:MOST_NAMED],
            self.background_job_id or other.background_job_id,
        )
