"""How an entry of the audit log is printed. Used by ``pgbroker_audit`` and ``pgbroker_jobs show``."""

import json
from typing import Any

from django_pgbroker.management.listing import write_moment
from django_pgbroker.models import AuditEntry

AUDIT_HEAD = ("id", "time", "actor", "source", "action", "count", "target", "reason")


def encode_entry(entry: AuditEntry) -> dict[str, Any]:
    """One entry with the keys that the reference documents."""
    return {
        "id": entry.pk,
        "occurred_at": entry.occurred_at,
        "actor": entry.actor,
        "source": entry.source,
        "action": entry.action,
        "target": entry.target,
        "reason": entry.reason,
        "before": entry.before,
        "after": entry.after,
        "count": entry.count,
        "tenant": entry.tenant.name if entry.tenant else None,
    }


def audit_row(entry: AuditEntry) -> tuple[str, ...]:
    """One entry as a line under ``AUDIT_HEAD``."""
    return (
        str(entry.pk),
        write_moment(entry.occurred_at),
        entry.actor,
        entry.source,
        entry.action,
        str(entry.count),
        json.dumps(entry.target, ensure_ascii=False),
        entry.reason or "",
    )
