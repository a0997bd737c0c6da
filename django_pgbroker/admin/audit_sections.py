"""What was done to one job, queue or worker, on its page: for those who may see the audit log."""

from datetime import datetime

from django.contrib.admin import AdminSite
from django.http import HttpRequest

from django_pgbroker.admin.display import NOTHING, link, moment
from django_pgbroker.admin.section import Section, Table
from django_pgbroker.models import AuditEntry
from django_pgbroker.operations.audit_log import AuditQuery, read_audit

#: Older acts are left to the audit log itself.
SHOWN_ACTS = 50


def audit_sections(site: AdminSite, request: HttpRequest, query: AuditQuery, read_at: datetime) -> list[Section]:
    """The newest acts on something, in a section of their own.

    Args:
        site: for the links.
        request: of whom.
        query: what it is.
        read_at: the database's clock when the page was read.
    """
    if not request.user.has_perm("django_pgbroker.view_auditentry"):
        return []
    page = read_audit(query, limit=SHOWN_ACTS)
    rows = [
        (
            link(site, AuditEntry, entry.pk, entry.action),
            entry.actor,
            moment(entry.occurred_at, read_at),
            entry.reason or NOTHING,
            entry.source,
        )
        for entry in page.rows
    ]
    remark = "" if rows else "Nothing so far."
    if page.next_before is not None:
        remark = f"The newest {SHOWN_ACTS}. The audit log has all."
    table = Table(("Act", "Who", "When", "Reason", "Source"), rows)
    return [Section("What was done to it", table=table if rows else None, remark=remark)]
