"""Bars and small curves made of characters, for the board of ``pgbroker_status --watch``."""

from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_PLAIN_LEVELS = "_.:-=+*#"


def draw_bar(value: float, most: float, width: int, *, is_plain: bool) -> str:
    """A bar whose length is the share of ``value`` in ``most``; whatever is above nothing can be seen.

    Args:
        value, most: 0 or more.
        width: characters of a full bar.
        is_plain: ASCII only.
    """
    if value <= 0 or most <= 0:
        return ""
    eighths = max(1, round(min(value / most, 1.0) * width * 8))
    if is_plain:
        return "#" * max(1, eighths // 8)
    full, rest = divmod(eighths, 8)
    return _EIGHTHS[8] * full + (_EIGHTHS[rest] if rest else "")


def draw_curve(values: Sequence[int | None], width: int, *, is_plain: bool) -> str:
    """The last ``width`` values as a curve between nothing and the largest of them; a gap where one is unknown."""
    levels = _PLAIN_LEVELS if is_plain else _LEVELS
    shown = list(values)[-width:]
    most = max((value for value in shown if value), default=0)
    top = len(levels) - 1
    return "".join(" " if value is None else levels[0 if not most else -(-value * top // most)] for value in shown)
