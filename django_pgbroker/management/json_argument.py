"""Arguments of a job as they are typed: a JSON object, or ``-`` for one on ``stdin``. For ``pgbroker_jobs``."""

import json
import sys
from argparse import ArgumentTypeError
from typing import Any

ARGUMENTS_HELP = "all of the handler's arguments as one JSON object; - reads it from stdin"


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
