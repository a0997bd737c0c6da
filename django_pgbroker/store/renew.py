"""Renew leases of jobs that still run. Called by the lease keeper."""

from collections.abc import Collection

from django_pgbroker.domain.records import ClaimedJob, RenewalReport
from django_pgbroker.store.arrays import array_of_booleans, array_of_integers
from django_pgbroker.store.gateway import Gateway

_ANSWERS = RenewalReport._fields


def renew_leases(
    gateway: Gateway, claims: Collection[ClaimedJob], begun: Collection[int], lease_seconds: float
) -> RenewalReport:
    """Renew the leases of ``claims``.

    Args:
        gateway: a connection of the broker's own.
        claims: at least one.
        begun: ids of those whose handler has started.
        lease_seconds: how long from now they may be held.

    Returns:
        The exceptions: ``busy`` ones are ours, but locked by another, to be tried again; the lease of ``stale`` ones is
        lost; somebody wants the ``cancelled`` ones to end.
    """
    ordered = sorted(claims)
    params = {
        "ids": array_of_integers(claim.id for claim in ordered),
        "tokens": array_of_integers(claim.lease_token for claim in ordered),
        "begun": array_of_booleans(claim.id in begun for claim in ordered),
        "lease_seconds": lease_seconds,
    }
    rows = gateway.fetch("renew_leases", params)
    return RenewalReport(*(frozenset(job_id for job_id, answer in rows if answer == word) for word in _ANSWERS))
