"""Text in aligned columns that no stored name can break. Used by the commands that print tables."""

from collections.abc import Sequence


def align_columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with a head line first, the columns parted by two spaces or more."""
    table = [tuple(make_printable(cell) for cell in row) for row in [head, *rows]]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def make_printable(text: str) -> str:
    """Names come from anywhere: a terminal must not obey what is in them, nor a line be broken by them."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
