"""The command line that started this process, so that it can be started once more. For ``pgbroker_worker``."""

import sys
from collections.abc import Sequence

from django.core.management.base import CommandError


def repeat_command(argv: Sequence[str] | None) -> list[str]:
    """The command line of this process, with the interpreter and its options.

    Args:
        argv: what Django's command was given to run; None where it was called by Python code.

    Raises:
        CommandError: this process was started for something else, which must not be started again.
    """
    own = list(argv or [])[1:]
    if not own or sys.orig_argv[-len(own) :] != own:
        raise CommandError(
            "several worker processes need a command line of their own: run manage.py pgbroker_worker --processes N, "
            "not call_command()"
        )
    return [sys.executable, *sys.orig_argv[1:]]
