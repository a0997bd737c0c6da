"""How lists and single objects are printed: aligned for people, tab-separated for programs, or as JSON."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import OutputWrapper

from django_pgbroker.management.columns import align_columns, make_printable

#: On a terminal a cell is cut here; elsewhere, in JSON and by ``show`` it is whole.
WIDEST_CELL = 60


def write_rows(
    out: OutputWrapper, head: Sequence[str], rows: Sequence[Sequence[str]], empty: str = "", *, is_whole: bool = False
) -> None:
    """Print a table: columns on a terminal, else lines with tabs between the cells, and a head line in either.

    Args:
        out: the command's ``stdout``.
        head: the names of the columns.
        rows: of printable or unprintable text.
        empty: what a terminal shows in place of no rows.
        is_whole: whether a terminal shows long cells whole too.
    """
    if not out.isatty():
        lines = ["\t".join(map(make_printable, row)) for row in [head, *rows]]
    elif rows:
        lines = align_columns(head, rows if is_whole else [[_shorten(cell) for cell in row] for row in rows])
    else:
        lines = [empty] if empty else []
    if lines:
        out.write("\n".join(lines))


def write_facts(out: OutputWrapper, facts: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one a line; a value of several lines stands indented below its name."""
    width = max(len(name) for name, _ in facts)
    for unsafe, text in facts:
        name = make_printable(unsafe)
        lines = [make_printable(line) for line in text.split("\n")]
        if len(lines) == 1:
            out.write(f"{name.ljust(width)}  {lines[0]}" if out.isatty() else f"{name}\t{lines[0]}")
        else:
            out.write("\n".join([name, *(f"    {line}" for line in lines)]))


def write_json(out: OutputWrapper, value: Mapping[str, Any]) -> None:
    """Print one JSON object; times are ISO 8601 in UTC."""
    out.write(json.dumps(value, indent=2, default=_encode))


def write_moment(when: datetime | None) -> str:
    """A time to the second, in UTC, as ``2026-11-30T13:56:14Z``; empty where there is none."""
    return "" if when is None else f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _encode(value: object) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


def _shorten(text: str) -> str:
    return text if len(text) <= WIDEST_CELL else f"{text[: WIDEST_CELL - 1]}…"
