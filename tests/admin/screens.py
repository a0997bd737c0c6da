"""The screens' addresses, and a row for each."""

from typing import Any

from django.urls import reverse

from tests import factories

MODELS = ["job", "archivedjob", "deadletter", "execution", "queue", "worker", "auditentry"]


def list_url(model: str) -> str:
    return reverse(f"admin:django_pgbroker_{model}_changelist")


def detail_url(model: str, object_id: object) -> str:
    return reverse(f"admin:django_pgbroker_{model}_change", args=(object_id,))


def make_row(model: str) -> Any:
    """One row for the screen of ``model``."""
    return {
        "job": factories.JobFactory,
        "archivedjob": factories.ArchivedJobFactory,
        "deadletter": lambda: factories.ArchivedJobFactory(dead=True),
        "execution": lambda: factories.ExecutionFactory(failed=True),
        "queue": factories.QueueFactory,
        "worker": factories.WorkerFactory,
        "auditentry": factories.AuditEntryFactory,
    }[model]()


def address_of(model: str, row: Any) -> str:
    """The address of the detail page of ``row``."""
    return detail_url(model, f"{row.job_id}-{row.lease_token}" if model == "execution" else row.pk)
