"""What is typed for one job: its arguments, its priority, when it is to start. For ``pgbroker_jobs``."""

import json
import sys
from argparse import ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any

from django_pgbroker.management.moments import MOMENT_HELP

ARGUMENTS_HELP = "all of the handler's arguments as one JSON object; - reads it from stdin"
LATER_HELP = f"not before {MOMENT_HELP} from now"


def read_arguments(text: str) -> dict[str, Any]:
    """A JSON object, for ``type=`` of an option.

    Raises:
        ArgumentTypeError: it is no JSON, or no object.
    """
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text, parse_constant=_refuse)
    except ValueError as error:
        raise ArgumentTypeError(f"no JSON: {error}. Write an object by name, as in '{{\"order_id\": 7}}'") from None
    if not isinstance(value, dict):
        raise ArgumentTypeError("no JSON object: write the arguments by name, as in '{\"order_id\": 7}'")
    return value


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def read_priority(text: str) -> int | str:
    """A number, or the name of a level, which the settings know."""
    return int(text) if text.lstrip("-").isdecimal() else text


def place_ahead(when: datetime | timedelta | None) -> dict[str, Any]:
    """A span from now or a time, as the options of a job call them."""
    return {"delay" if isinstance(when, timedelta) else "run_at": when}
