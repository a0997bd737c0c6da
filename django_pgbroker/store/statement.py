"""Read the statements of ``store/sql`` and the header in their comments. Used by the gateway and by tests."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "sql"
_FIELD = re.compile(r"^-- (?P<name>purpose|params|returns|moves|locks|index):\s*(?P<text>.*)$")
_CONTINUED = re.compile(r"^--\s{2,}(?P<text>\S.*)$")


@dataclass(frozen=True)
class Statement:
    """One statement: its name, its text as PostgreSQL gets it, and the fields of its header."""

    name: str
    text: str
    header: dict[str, str]

    @property
    def moves(self) -> list[tuple[str, str]]:
        """The state moves that the header declares, as pairs of state names; ``-> pending`` starts from nothing."""
        pairs = []
        for move in filter(None, (part.strip() for part in self.header.get("moves", "").split(","))):
            origins, _, targets = move.partition("->")
            pairs += [
                (origin.strip(), target.strip()) for origin in origins.split("|") for target in targets.split("|")
            ]
        return pairs


@cache
def statement(name: str) -> Statement:
    """The statement in ``store/sql/<name>.sql``.

    Raises:
        FileNotFoundError: there is no such statement.
    """
    source = (_FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    lines = source.splitlines()
    body = [line for line in lines if not line.lstrip().startswith("--")]
    return Statement(name, "\n".join(body).strip().rstrip(";"), _read_header(lines))


def statement_names() -> list[str]:
    """The names of all statements, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.sql"))


def _read_header(lines: list[str]) -> dict[str, str]:
    header: dict[str, str] = {}
    current = None
    for line in lines:
        if not line.startswith("--"):
            break
        if field := _FIELD.match(line):
            current = field["name"]
            header[current] = field["text"]
        elif current and (more := _CONTINUED.match(line)):
            header[current] += " " + more["text"]
    return header
