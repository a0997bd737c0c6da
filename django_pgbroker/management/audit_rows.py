"""How an entry of the audit log is printed. Used by ``pgbroker_audit`` and ``pgbroker_jobs show``."""

import json
from typing import Any

from django_pgbroker.management.listing import write_moment
from django_pgbroker.models import AuditEntry

AUDIT_HEAD = ("id", "time", "actor", "source", "action", "count", "target", "reason", "change")

#: More ids are only counted.
_MOST_NAMED = 10


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
        _describe_target(entry.target),
        entry.reason or "",
        _describe_change(entry),
    )


def _describe_target(target: Any) -> str:
    """In words, with the first of many ids; the whole is in the JSON."""
    if not isinstance(target, dict):
        return json.dumps(target, ensure_ascii=False)
    parts = []
    for name, value in target.items():
        if isinstance(value, list) and len(value) > _MOST_NAMED:
            parts.append(f"{name} {', '.join(map(str, value[:_MOST_NAMED]))} and {len(value) - _MOST_NAMED:,} more")
        elif isinstance(value, list):
            parts.append(f"{name} {', '.join(map(str, value))}")
        else:
            parts.append(f"{name} {value if isinstance(value, str | int) else json.dumps(value, ensure_ascii=False)}")
    return "; ".join(parts)


def _describe_change(entry: AuditEntry) -> str:
    """What it was before and is since, as JSON."""
    before, after = (json.dumps(value or {}, ensure_ascii=False) for value in (entry.before, entry.after))
    return f"{before} -> {after}"
