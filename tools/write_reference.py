"""Write the pages of the reference that are made from the code: states.md and statements.md. Run by hand.

``python tools/write_reference.py`` writes them, ``--check`` only says whether they are current; a test asks the same.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from django_pgbroker.domain.states import (
    LIVE_STATES,
    TRANSITIONS,
    UNCOUNTED_OUTCOMES,
    JobState,
    Outcome,
    ParkedReason,
)
from django_pgbroker.store.statement import Statement, statement, statement_names

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/reference"
STORE = ROOT / "django_pgbroker/store"

NOTICE = "<!-- Made from the code by tools/write_reference.py. Change the code and run it again. -->"

#: One sentence a state. A member without one stops the writer.
STATES = {
    JobState.PENDING: "Due, and waiting for a worker. Only these rows are in the index that claims read.",
    JobState.RUNNING: "A worker holds a lease on it: its handler runs, or is about to.",
    JobState.SCHEDULED: "Waits for a time: a delay, the back-off after a failure, or a snooze.",
    JobState.BLOCKED: "Waits for other jobs to complete.",
    JobState.PARKED: "Waits for something that has no time; the reason is one of those below.",
    JobState.COMPLETED: "Its handler returned.",
    JobState.CANCELLED: "A handler or a person said that it need not be done.",
    JobState.EXPIRED: "Its latest start passed before it was claimed, or before it could be tried again.",
    JobState.DEAD: "A dead letter: its attempts are spent. No age removes it.",
}

OUTCOMES = {
    Outcome.RELEASED: "The claim was handed back before its handler began; the job keeps its place in the queue.",
    Outcome.COMPLETED: "The handler returned.",
    Outcome.FAILED: "The handler raised, or asked for a retry.",
    Outcome.TIMED_OUT: "The attempt ran beyond its time-out or deadline, or a statement of it beyond its own limit.",
    Outcome.SNOOZED: "The handler put its job off.",
    Outcome.CANCELLED: "The handler cancelled its job, or somebody did while it ran.",
    Outcome.LOST: "The lease lapsed, for the worker died, froze or was cut off; or the child process died.",
    Outcome.INTERRUPTED: "The worker had to stop and told the handler to end.",
}

REASONS = {
    ParkedReason.LIMIT: "A slot of a concurrency limit.",
    ParkedReason.RATE: "A token of a rate limit.",
    ParkedReason.SEQUENCE: "Its turn among the jobs of its sequence.",
    ParkedReason.UNKNOWN_TYPE: "A worker that knows its job type.",
    ParkedReason.QUARANTINE: "A person who lifts the quarantine of its job type.",
    ParkedReason.BREAKER: "The circuit breaker of its job type to close.",
}


def pages() -> dict[Path, str]:
    """The pages and their text."""
    return {FOLDER / "states.md": write_states(), FOLDER / "statements.md": write_statements()}


def write_states() -> str:
    """States, outcomes, parked reasons, and every legal move with the statements that make it."""
    return _join(
        "# States",
        NOTICE,
        "Where a job may stand, how one claim of it may end, and which statement moves it from where to where. The "
        "values are those in the tables; the words are the same in commands, in the admin and here. The rules are in "
        "`django_pgbroker/domain/states.py`, and a test compares them with the headers of the "
        "[statements](statements.md).",
        "## States of a job",
        "Live jobs are rows of `pgbroker.job`, finished ones of `pgbroker.archived_job`.",
        _table(
            ("value", "state", "table", "meaning"),
            (
                (state.value, f"*{state.label}*", "job" if state in LIVE_STATES else "archived_job", STATES[state])
                for state in JobState
            ),
        ),
        "## Moves",
        _diagram(),
        _table(("from", "to", "made by"), _moves()),
        "A move without a statement is legal, and nothing makes it yet. What is not in the table is refused by the "
        "tests, wherever it is written. A finished job never moves.",
        "## Outcomes of an execution",
        "Every ended claim leaves a row in `pgbroker.execution`, except a release. The attempt is counted when a job "
        "is claimed; some outcomes give it back.",
        _table(
            ("value", "outcome", "attempt", "meaning"),
            (
                (
                    outcome.value,
                    f"*{outcome.label}*",
                    "given back" if outcome in UNCOUNTED_OUTCOMES else "counted",
                    OUTCOMES[outcome],
                )
                for outcome in Outcome
            ),
        ),
        "## What a parked job waits for",
        _table(
            ("value", "reason", "waits for"),
            ((reason.value, reason.label, REASONS[reason]) for reason in ParkedReason),
        ),
    )


def write_statements() -> str:
    """The header of every statement."""
    known = [statement(name) for name in statement_names()]
    return _join(
        "# Statements",
        NOTICE,
        "All that the broker does to its tables, apart from the migrations, the building of partitions and the "
        "reading of the admin: one file a statement in `django_pgbroker/store/sql/`, whole and ready to be pasted into "
        "psql. The headers are held to the truth by tests: `tests/store/test_headers.py` (parameters, moves, tables, "
        "indexes), and `tests/store/test_plans.py`, `tests/maintenance/test_plans.py` and `tests/plans/` (the index is "
        "the one that is used).",
        _table(
            ("statement", "purpose"),
            ((f"[`{each.name}`](#{each.name})", each.header["purpose"]) for each in known),
        ),
        *(_describe(each) for each in known),
    )


def _describe(each: Statement) -> str:
    fields = [("used by", _users(each.name)), *((name, each.header.get(name, "")) for name in _FIELDS)]
    return _join(
        f"## {each.name}",
        _sentence(each.header["purpose"]),
        _table(("", ""), ((name, text or "nothing") for name, text in fields)),
    ).rstrip()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


_FIELDS = ("params", "returns", "moves", "locks", "index")


def _users(name: str) -> str:
    """The modules of the store that run a statement; ``tests/test_architecture.py`` sees that there is one."""
    quoted = re.compile(rf'"{name}"')
    users = [path.name for path in sorted(STORE.glob("*.py")) if quoted.search(path.read_text(encoding="utf-8"))]
    return ", ".join(f"`store/{user}`" for user in users)


def _moves() -> Iterator[tuple[str, str, str]]:
    makers: dict[tuple[str, str], list[str]] = {}
    for name in statement_names():
        for move in statement(name).moves:
            makers.setdefault(move, []).append(f"[`{name}`](statements.md#{name})")
    for (origin, target), made_by in makers.items():
        if not origin:
            yield "", f"*{target}*", ", ".join(made_by)
    for start, targets in TRANSITIONS.items():
        for end in sorted(targets):
            yield f"*{start.label}*", f"*{end.label}*", ", ".join(makers.get((start.label, end.label), []))


def _diagram() -> str:
    born = sorted({target for name in statement_names() for origin, target in statement(name).moves if not origin})
    lines = [f"    [*] --> {target}" for target in born]
    lines += [f"    {start.label} --> {end.label}" for start, targets in TRANSITIONS.items() for end in sorted(targets)]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def _table(head: tuple[str, ...], rows: Iterator[tuple[object, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _join(*parts: str) -> str:
    return "\n\n".join(part if _is_laid_out(part) else textwrap.fill(part, 120) for part in parts) + "\n"


def _is_laid_out(part: str) -> bool:
    return part.startswith(("#", "|", "<!--", "```"))


def main() -> int:
    """Write the pages, or with ``--check`` name those that are not current."""
    is_check = sys.argv[1:] == ["--check"]
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if is_check:
            print(f"{path.relative_to(ROOT)} is not current; run: python tools/write_reference.py")
        else:
            path.write_text(pages()[path], encoding="utf-8")
            print(f"{path.relative_to(ROOT)} written")
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
