"""Read what operators did, newest first. For ``pgbroker_audit``, ``pgbroker_jobs show`` and the admin."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q, QuerySet

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.options import read_text
from django_pgbroker.models import AuditEntry
from django_pgbroker.operations.pages import Page, read_page


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which entries; all that is given must hold.

    Args:
        actor, action, source: exact words, such as ``ada``, ``job.cancel``, ``command``.
        since, until: bounds on when it was done; aware, the first is included and the second is not.
        job_id, worker_id: what it was done to.
        queue: that it was done to, or to jobs in it.
    """

    actor: str | None = None
    action: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    job_id: int | None = None
    queue: str | None = None
    worker_id: int | None = None

    def __post_init__(self) -> None:
        """Check the words.

        Raises:
            InvalidOption: one that no entry can have.
        """
        for name in ("actor", "action", "source", "queue"):
            read_text(name, getattr(self, name))

    @property
    def targets(self) -> list[Q]:
        """What the target of an entry must contain."""
        found: list[Q] = []
        if self.job_id is not None:
            found.append(Q(target__contains={"jobs": [self.job_id]}))
        if self.queue is not None:
            found.append(Q(target__contains={"queue": self.queue}) | Q(target__contains={"queues": [self.queue]}))
        if self.worker_id is not None:
            found.append(Q(target__contains={"worker": self.worker_id}))
        return found

    @property
    def columns(self) -> dict[str, Any]:
        """The conditions on columns."""
        given = {
            "actor": self.actor,
            "action": self.action,
            "source": self.source,
            "occurred_at__gte": self.since,
            "occurred_at__lt": self.until,
        }
        return {name: value for name, value in given.items() if value is not None}


EVERYTHING = AuditQuery()


def read_audit(
    query: AuditQuery = EVERYTHING, *, before: int | None = None, limit: int = 100, using: str | None = None
) -> Page:
    """One page of the audit log, newest first.

    Args:
        query: which entries.
        before: only entries with a lower id, as ``next_before`` of the page before.
        limit: entries on a page.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Returns:
        ``AuditEntry`` rows, each with its tenant. Actor, action, source and times have no index: a page looks at the
        newest hundred thousand entries before its position, and may be short although the log goes on.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    everything = AuditEntry.objects.using(using or get_settings().database)
    wanted = everything.select_related("tenant").filter(**query.columns)
    if query.targets:
        return _read_by_target(wanted, query, before, limit)
    return read_page(everything, wanted, before=before, limit=limit, is_served=not query.columns)


def _read_by_target(wanted: QuerySet[Any, Any], query: AuditQuery, before: int | None, limit: int) -> Page:
    """The index of targets finds all entries of one thing; the sum keeps the planner from walking the key instead."""
    for target in query.targets:
        wanted = wanted.filter(target)
    if before is not None:
        wanted = wanted.filter(pk__lt=before)
    rows = list(wanted.order_by((F("id") + 0).desc())[: limit + 1])
    return Page(tuple(rows[:limit]), rows[limit - 1].pk if len(rows) > limit else None)
