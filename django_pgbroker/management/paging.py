"""``--after`` and ``--limit`` of the commands that list, and where the list goes on."""

from argparse import ArgumentTypeError

from django.core.management.base import CommandParser, OutputWrapper

from django_pgbroker.domain.options import LARGEST_ID
from django_pgbroker.operations.pages import MOST_ROWS, Page


def add_paging_options(parser: CommandParser) -> None:
    """Declare ``--after`` and ``--limit``."""
    parser.add_argument("--after", type=read_id, metavar="ID", help="go on after this one, the last of the page before")
    parser.add_argument("--limit", type=_read_limit, default=100, metavar="N", help="rows at most (default: 100)")


def tell_more(err: OutputWrapper, page: Page) -> None:
    """Say on ``stderr`` how to go on, where the list does."""
    if page.next_before is not None:
        err.write(f"There may be more: go on with --after {page.next_before}", lambda text: text)


def read_id(text: str) -> int:
    """An id, for ``type=`` of an option.

    Raises:
        ArgumentTypeError: nothing can have it.
    """
    if text.isascii() and text.isdigit() and 0 < int(text[:20]) <= LARGEST_ID:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is no id: a whole number from 1 on")


def _read_limit(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text[:20]) <= MOST_ROWS:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is no limit: a whole number from 1 to {MOST_ROWS:,}")
