"""What came of a verb, as a sentence, as lines for programs, and as an exit code. Used by ``verb_command``."""

from dataclasses import dataclass
from typing import Any

from django_pgbroker.domain.verb_report import RefusalKind, VerbReport
from django_pgbroker.domain.verbs import find_verb
from django_pgbroker.management.columns import make_printable
from django_pgbroker.management.exit_codes import ExitCode
from django_pgbroker.operations.job_changes import Matches

#: So many ids stand in a sentence.
_IDS_IN_WORDS = 10


@dataclass(frozen=True)
class Telling:
    """A report and how to tell it.

    Args:
        report: what came of the verb.
        target: name of the object, where the report has no ids.
        noun: what is counted, where it is not the verb's subject.
        is_trial: whether it was undone: new ids mean nothing then.
        matches: how many a job of the broker would take.
    """

    report: VerbReport
    target: str | None = None
    noun: str | None = None
    is_trial: bool = False
    matches: Matches | None = None

    @property
    def is_something(self) -> bool:
        """Whether anything is changed, asked to end, or left to a job."""
        return bool(self.report.changed or self.report.requested or self.report.background_job_id)

    @property
    def code(self) -> ExitCode:
        """The exit status."""
        if self.is_something:
            return ExitCode.IN_PART if self.report.refused else ExitCode.DONE
        kinds = {refusal.kind for refusal in self.report.refusals}
        return ExitCode.NOT_PERMITTED if kinds == {RefusalKind.NOT_PERMITTED} else ExitCode.NOTHING

    @property
    def sentence(self) -> str:
        """For people."""
        report, done = self.report, find_verb(self.report.verb).done
        if report.background_job_id:
            return self._describe_background()
        refused = f" {report.refused:,} refused." if report.refused else ""
        if not self.is_something:
            return f"Nothing was {done}." + (refused or " Nothing matched.")
        if not report.changed:
            return f"{self._count(report.requested)} had been asked to end before.{refused}"
        running = f" {report.requested:,} of them run, and are asked to end." if report.requested else ""
        if self.is_trial:
            return f"{self._count(report.changed)} would be {done}{self._name_some()}.{running}{refused}"
        return f"{self._count(report.changed)} {done}{self._name_some()}.{running}{refused}"

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """For programs: object, outcome, why."""
        report = self.report
        changed = "would change" if self.is_trial else "changed"
        if report.background_job_id:
            rows = [("" if self.is_trial else str(report.background_job_id), "background", self.sentence)]
        elif report.ids or self._created or not report.changed:
            rows = [(str(each), self._word(changed), "") for each in report.ids]
        else:
            rows = [(self.target or "", changed, "")]
        rows += [(str(each), "created", "") for each in self._created]
        return rows + [(str(refusal.job_id), "refused", refusal.why) for refusal in report.refusals]

    def as_json(self) -> dict[str, Any]:
        """With the keys that the reference documents."""
        report = self.report
        return {
            "verb": report.verb,
            "is_dry_run": self.is_trial,
            "changed": report.changed,
            "requested": report.requested,
            "ids": list(report.ids),
            "created": list(self._created),
            "refused": report.refused,
            "refusals": [{"id": each.job_id, "kind": each.kind.value, "why": each.why} for each in report.refusals],
            "is_background": report.background_job_id is not None,
            "background_job_id": None if self.is_trial else report.background_job_id,
            "obstacle": report.obstacle,
        }

    def _word(self, changed: str) -> str:
        """The original of a clone is not changed."""
        return "original" if self.report.created else changed

    @property
    def _created(self) -> tuple[int, ...]:
        return () if self.is_trial else self.report.created

    def _describe_background(self) -> str:
        done, job_id = find_verb(self.report.verb).done, self.report.background_job_id
        if not self.is_trial:
            obstacle = self.report.obstacle
            waits = f" It waits, for {obstacle}: see to that, or cancel it and give --foreground." if obstacle else ""
            return (
                f"Job {job_id} of the broker does it. Watch it: manage.py pgbroker_jobs show {job_id}. "
                f"Stop it: manage.py pgbroker_jobs cancel {job_id}.{waits}"
            )
        if self.matches is None:
            return f"All that match would be {done}, by a job of the broker."
        at_least = "" if self.matches.is_exact else "At least "
        return f"{at_least}{self._count(self.matches.count)} would be {done}, by a job of the broker."

    def _count(self, number: int) -> str:
        each = self.noun or find_verb(self.report.verb).subject
        return f"{number:,} {each}{'' if number == 1 else 's'}"

    def _name_some(self) -> str:
        ids = self.report.ids or self._created
        some = ", ".join(map(str, ids[:_IDS_IN_WORDS])) + (", …" if len(ids) > _IDS_IN_WORDS else "")
        some = some or make_printable(self.target or "")
        as_new = f", as {', '.join(map(str, self._created))}" if self.report.ids and self._created else ""
        return f": {some}{as_new}" if some else ""
