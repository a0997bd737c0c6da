"""Claims made by hand, for the parts of a worker that need no database."""

import json
from typing import Any

from django_pgbroker.domain.records import ClaimedJob

EXAMPLE = ClaimedJob(
    id=7, lease_token=70, job_type_id=1, tenant_id=1, queue_id=1, attempt=1, max_attempts=3, priority=0,
    timeout_seconds=None, interruptions=0, claim_order=0.0, deadline_at=None, has_begun=True, version=1, arguments="{}",
    headers=None, correlation_id=None, claim_seconds=0.001, left_behind=0,
)  # fmt: skip


def make_claim(number: int = 7, arguments: dict[str, Any] | None = None, **columns: Any) -> ClaimedJob:
    """A claim of job ``number``."""
    return EXAMPLE._replace(id=number, lease_token=number * 10, arguments=json.dumps(arguments or {}), **columns)
