"""Carry out one verb on many jobs, in bounded batches, each with its audit entry. Called by ``job_verbs``."""

from collections.abc import Iterable, Mapping
from typing import Any, NotRequired, Required, TypedDict

from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.operations.actors import Acting

#: One job by its id, several, or all that match.
type Selection = int | Iterable[int] | JobFilter

#: A filter that matches more is carried out by a job of the broker itself.
MOST_AT_ONCE = 2_000

#: So many ids can be named at most; for more there are filters.
MOST_IDS = 10_000


class Asking(TypedDict, total=False):
    """Who asks for a verb, and how.

    Args:
        actor: a user of Django, whose permissions are checked, or a name for the audit, which is trusted.
        reason: why, up to 200 characters.
        source: ``code``, ``command``, ``ui`` or ``duty``.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.
        in_background: True leaves it to a job of the broker, False never does; by default large filters do.
    """

    actor: Required[Acting]
    reason: NotRequired[str | None]
    source: NotRequired[str]
    using: NotRequired[str | None]
    in_background: NotRequired[bool | None]


def change_jobs(
    verb: Verb,
    selection: Selection,
    options: Mapping[str, Any],
    *,
    actor: Acting,
    reason: str | None = None,
    source: str = "code",
    using: str | None = None,
    in_background: bool | None = None,
) -> VerbReport:
    """Carry out a verb; see ``cancel_jobs`` for arguments, answer and errors."""
    raise NotImplementedError
