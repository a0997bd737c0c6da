"""Priorities as numbers and as named levels. Used by the settings, the job types and enqueue."""

from collections.abc import Mapping

from django_pgbroker.domain.errors import InvalidOption, show_value
from django_pgbroker.domain.names import suggest

LOWEST_PRIORITY = -100
HIGHEST_PRIORITY = 100


def resolve_priority(priority: int | str, levels: Mapping[str, int]) -> int:
    """The number for a priority that is given as a number or as the name of a level. Higher runs first.

    Args:
        priority: -100 to 100, or a key of ``levels``.
        levels: the named levels of the settings.

    Raises:
        InvalidOption: no such level, no whole number, or out of bounds.
    """
    if isinstance(priority, str):
        if priority not in levels:
            raise InvalidOption(
                f"priority {priority!r} is not a level of PGBROKER['PRIORITY_LEVELS']. "
                f"{suggest(priority, levels)}".rstrip()
            )
        return levels[priority]
    if type(priority) is not int or not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        named = f", or one of the levels {', '.join(map(repr, sorted(levels)))}" if levels else ""
        raise InvalidOption(
            f"priority {show_value(priority)} must be a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}"
            f"{named}"
        )
    return priority
