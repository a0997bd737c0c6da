"""Run a command as a shell would see it: what it prints where, and its exit status."""

import json
import re
from io import StringIO
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import AuditEntry
from tests import factories

#: What stored names may be like, and what no terminal may obey.
HOSTILE = [
    "100%s %d {0}",
    "a'b\"c; drop table job --",
    "\x1b[2J\x1b]0;owned\x07",
    "two\nlines\tand tabs",
    "🦊 ключ",
    "x" * 200,
]


class Terminal(StringIO):
    """Says that a person reads it."""

    def isatty(self) -> bool:
        return True


class Ran(NamedTuple):
    """What came of one run."""

    status: int
    out: str
    error: str

    @property
    def rows(self) -> list[list[str]]:
        """The lines of tab-separated output, without the head."""
        return [line.split("\t") for line in self.out.splitlines()[1:]]

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(command: str, *arguments: str, terminal: bool = False) -> Ran:
    """Run it; a refusal is its status and message, as on a command line."""
    out, error = Terminal() if terminal else StringIO(), StringIO()
    try:
        call_command(command, *arguments, stdout=out, stderr=error)
    except CommandError as refusal:
        return Ran(refusal.returncode, out.getvalue(), error.getvalue() + str(refusal))
    return Ran(0, out.getvalue(), error.getvalue())


def make_user(username: str, *codenames: str) -> Any:
    """A user of Django with these permissions of the broker and no others."""
    user = get_user_model().objects.create_user(username)
    permissions = Permission.objects.filter(content_type__app_label="django_pgbroker", codename__in=codenames)
    assert len(permissions) == len(codenames)
    user.user_permissions.set(permissions)
    return user


def audit(**fields: Any) -> Any:
    """An entry of the audit log."""
    given = {"actor": "ada", "source": "code", "action": "job.cancel", "target": {"jobs": [7]}}
    return AuditEntry.objects.create(**given | fields)


def has_control_characters(text: str) -> bool:
    return bool(re.search(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]", text))


def jobs(*arguments: str, terminal: bool = False) -> Ran:
    """Run ``pgbroker_jobs``."""
    return run("pgbroker_jobs", *arguments, terminal=terminal)


def make(state: JobState, **fields: Any) -> Any:
    """A job in this state, live or finished; a scheduled one waits for a retry."""
    if state is JobState.SCHEDULED:
        fields = {"attempt": 1, **fields}
    if state is JobState.DEAD:
        return factories.ArchivedJobFactory(dead=True, **fields)
    if state.is_finished:
        return factories.ArchivedJobFactory(state=state, **fields)
    if state is JobState.RUNNING:
        return factories.JobFactory(running=True, **fields)
    return factories.JobFactory(state=state, **fields)


class Typed:
    """A terminal on which somebody typed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self._text

    read = readline
