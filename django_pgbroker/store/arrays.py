"""Write arrays as PostgreSQL's own literals: one parse on the server, one type, whatever the values."""

from collections.abc import Iterable


def array_of_numbers(values: Iterable[object]) -> str:
    """``{1,2,3}`` for numbers; ``NULL`` where a value is None."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def array_of_integers(values: Iterable[int]) -> str:
    """``{1,2,3}`` for integers, members of an IntEnum included."""
    return "{" + ",".join([int.__repr__(value) for value in values]) + "}"


def array_of_booleans(values: Iterable[bool]) -> str:
    """``{t,f}`` for booleans."""
    return "{" + ",".join(["t" if value else "f" for value in values]) + "}"


def array_of_texts(values: Iterable[str | None]) -> str:
    """``{"a","b"}`` for texts, quoted; ``NULL`` where a value is None."""
    return "{" + ",".join([_quote(value) for value in values]) + "}"


def _quote(text: str | None) -> str:
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
