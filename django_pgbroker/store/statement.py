"""Read the statements of ``store/sql`` and the header in their comments. Used by the gateway and by tests."""

import re
from dataclasses import dataclass
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


def statement(name: str) -> Statement:
    """The statement in ``store/sql/<name>.sql``.

    Raises:
        KeyError: there is no such statement.
    """
    return _STATEMENTS[name]


def statement_names() -> list[str]:
    """The names of all statements, sorted."""
    return sorted(_STATEMENTS)


def _read(path: Path) -> Statement:
    lines = path.read_text(encoding="utf-8").splitlines()
    body = [line for line in lines if not line.lstrip().startswith("--")]
    return Statement(path.stem, "\n".join(body).strip().rstrip(";"), _read_header(lines))


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


#: All of them, read with the code that calls them: a release that is replaced under a running process mixes nothing.
_STATEMENTS = {path.stem: _read(path) for path in _FOLDER.glob("*.sql")}
