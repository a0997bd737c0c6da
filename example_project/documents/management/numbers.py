"""Numbers on the command line."""

from argparse import ArgumentTypeError


def at_least_one(text: str) -> int:
    """Return the whole number that ``text`` names, for ``add_argument(type=...)``."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)
