"""What is said of one public bug case, and the capabilities that some still wait for. For the table."""

from typing import NamedTuple


class Case(NamedTuple):
    """One bug that another job queue has had.

    Args:
        title: what went wrong, in a few words.
        tests: that meet it here, or the part of it that can be met now.
        waits_for: the capability without which the rest of it cannot be tried; empty when nothing is left.
    """

    title: str
    tests: tuple[str, ...] = ()
    waits_for: str = ""


SCHEDULES = "recurring schedules"
DEPENDENCIES = "dependencies and run groups"
UNIQUENESS = "unique keys"
LIMITS = "concurrency limits"
TENANCY = "tenants with rights of their own"
OPERATOR = "actions of operators: cancel, redrive, delete"
BULK = "bulk enqueue"
MODES = "an immediate mode beside the database"
PROCESSES = "handlers in child processes"
