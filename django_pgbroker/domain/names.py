"""Which names queues, job types and tenants may have. Used wherever a name enters the broker."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from django_pgbroker.domain.errors import InvalidName, show_value

DEFAULT_TENANT = "default"

#: The job type that carries out verbs on very many jobs. Its arguments name an actor, who is trusted.
BULK_JOB_TYPE = "pgbroker.change_jobs"

#: Job types of the broker itself: nobody writes the arguments of their jobs, copies them or brings them back.
OWN_JOB_TYPES = frozenset({BULK_JOB_TYPE})

_JOB_TYPE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")
_QUEUE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_TENANT_LENGTH = 100


def check_job_type_name(name: object) -> str:
    """Return ``name`` if a job type may have it: 1 to 200 of the characters A-Z a-z 0-9 ``_ . : -``.

    Raises:
        InvalidName: it may not.
    """
    if type(name) is str and _JOB_TYPE.fullmatch(name):
        return name
    raise InvalidName(
        f"{show_value(name)} cannot be the name of a job type: use 1 to 200 of the characters A-Z a-z 0-9 _ . : - "
        "and begin with a letter, a digit or _"
    )


def check_queue_name(name: object) -> str:
    """Return ``name`` if a queue may have it: 1 to 100 of the characters A-Z a-z 0-9 ``_ . -``.

    A colon is left out because ``--queues name:weight`` uses it.

    Raises:
        InvalidName: it may not.
    """
    if type(name) is str and _QUEUE.fullmatch(name):
        return name
    raise InvalidName(
        f"{show_value(name)} cannot be the name of a queue: use 1 to 100 of the characters A-Z a-z 0-9 _ . - "
        "and begin with a letter, a digit or _"
    )


def check_tenant_name(name: object) -> str:
    """Return ``name`` if a tenant may have it: 1 to 100 printable characters, no space at either end.

    Raises:
        InvalidName: it may not.
    """
    if type(name) is str and 0 < len(name) <= _TENANT_LENGTH and name.isprintable() and name == name.strip():
        return name
    raise InvalidName(
        f"{show_value(name)} cannot be the name of a tenant: use 1 to 100 printable characters, no space at either end"
    )


def suggest(name: str, known: Iterable[str]) -> str:
    """A sentence with the known names that resemble ``name``, or with all of them when there are few; may be empty."""
    names = sorted(known)
    plain = {other.casefold(): other for other in names}
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    if not close:
        close = [plain[other] for other in get_close_matches(name.casefold(), plain, n=3, cutoff=0.6)]
    if close:
        return f"Did you mean {' or '.join(map(repr, close))}?"
    if names and len(names) <= 10:
        return f"Known: {', '.join(map(repr, names))}."
    return ""
