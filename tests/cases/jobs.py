"""Handlers of the cases, known to workers with ``tests.cases.settings`` alone."""

import asyncio

from django_pgbroker import Constant, job
from tests.scenarios.jobs import tell


class Unusual(BaseException):
    """Neither an Exception nor anything that Python knows."""


EXITS = {
    "SystemExit(0)": SystemExit(0),
    "SystemExit('x')": SystemExit("x"),
    "GeneratorExit()": GeneratorExit(),
    "CancelledError()": asyncio.CancelledError(),
    "KeyboardInterrupt()": KeyboardInterrupt(),
    "Unusual()": Unusual("odd"),
}


@job("cases.leave", retry=Constant(0), max_attempts=2)
def leave(how: str):
    """Ends as a process or a thread would."""
    tell("begun")
    raise EXITS[how]


@job("cases.known_here", retry=Constant(0))
def known_here():
    tell("done")
