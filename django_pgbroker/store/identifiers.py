"""Translate names to ids and back, once a connection. Called by the worker when it has connected."""

from collections.abc import Iterable

from django_pgbroker.store.arrays import array_of_texts
from django_pgbroker.store.gateway import Gateway


def find_queue_ids(gateway: Gateway, names: Iterable[str]) -> dict[str, int]:
    """Queue names to ids; a name without a row is left out."""
    return dict(gateway.fetch("find_queue_ids", {"names": array_of_texts(names)}))


def find_job_type_ids(gateway: Gateway, names: Iterable[str]) -> dict[str, int]:
    """Job type names to ids; a name without a row is left out."""
    return dict(gateway.fetch("find_job_type_ids", {"names": array_of_texts(names)}))


def find_tenant_name(gateway: Gateway, tenant_id: int) -> str:
    """The name of a tenant.

    Raises:
        LookupError: no tenant has this id.
    """
    return str(gateway.fetch_one("find_tenant_name", {"id": tenant_id})[0])
