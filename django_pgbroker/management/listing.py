"""How lists and single objects are printed: aligned for people, tab-separated for programs, or as JSON."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from shutil import get_terminal_size
from typing import Any

from django.core.management.base import OutputWrapper

from django_pgbroker.management.columns import align_columns, make_printable

#: On a terminal a cell is cut here, or where the line would not fit; elsewhere, in JSON and by ``show`` it is whole.
WIDEST_CELL = 60

#: Narrower no column becomes for the sake of the line.
_NARROWEST = 8

_GAP = 2


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
        lines = align_columns(head, rows if is_whole else fit(head, rows, get_terminal_size().columns))
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


def fit(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Cut the longest cells in their middle, so that lines are no wider than a terminal where that can be.

    Args:
        head: the names of the columns, which stay whole.
        rows: of texts.
        width: of the terminal, in characters.
    """
    table = [[make_printable(cell) for cell in row] for row in rows]
    longest = [max(len(row[column]) for row in table) for column in range(len(head))]
    widths = [min(length, WIDEST_CELL) for length in longest]
    floors = [max(_NARROWEST, len(name)) for name in head]
    room = width - _GAP * (len(head) - 1)
    while sum(map(max, widths, map(len, head))) > room:
        widest = max(range(len(head)), key=lambda column: widths[column] - floors[column])
        if widths[widest] <= floors[widest]:
            break
        widths[widest] -= 1
    return [[_shorten(cell, length) for cell, length in zip(row, widths, strict=True)] for row in table]


def _shorten(text: str, length: int) -> str:
    """Both ends tell names apart."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[len(text) - tail :]}"
