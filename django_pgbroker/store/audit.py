"""Write down what an operator did, in the transaction of the act. Called by every verb that has no entry of its own."""

import json
from collections.abc import Mapping
from typing import Any

from django_pgbroker.store.gateway import CallerGateway


def write_audit(
    gateway: CallerGateway,
    *,
    actor: str,
    source: str,
    action: str,
    target: Mapping[str, Any],
    reason: str | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    count: int = 1,
    tenant_id: int | None = None,
) -> None:
    """Append one entry.

    Args:
        gateway: the caller's.
        actor, source, reason: who acts, from where and why.
        action: name of the verb.
        target: what it was done to: ``{"jobs": [7]}``, ``{"queue": "mail"}``, ``{"worker": 3}``.
        before, after: what changed, as strict JSON.
        count: how many were changed.
        tenant_id: whose they are, where it is one tenant.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    gateway.fetch(
        "write_audit",
        {
            "actor": actor,
            "source": source,
            "action": action,
            "target": json.dumps(target),
            "reason": reason,
            "before": None if before is None else json.dumps(before),
            "after": None if after is None else json.dumps(after),
            "count": count,
            "tenant_id": tenant_id,
        },
    )
