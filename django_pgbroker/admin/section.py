"""The parts of a detail page. Built by the screens, drawn by one template."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows under headings; a cell is a text (escaped when drawn) or ready markup."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Section:
    """One titled part of a detail page: facts side by side, a block of text that scrolls, a table, a remark."""

    title: str
    facts: Sequence[tuple[str, Any]] = ()
    text: str | None = None
    table: Table | None = None
    remark: str = ""
