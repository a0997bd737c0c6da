"""Which queues wait for the promoter. Called by the promoter duty."""

from typing import NamedTuple

from django_pgbroker.store.gateway import Gateway


class DueQueue(NamedTuple):
    """A queue that has a scheduled job whose time has come."""

    id: int
    name: str


def find_due_queues(gateway: Gateway) -> list[DueQueue]:
    """The queues with due scheduled jobs, by id."""
    return [DueQueue(*row) for row in gateway.fetch("find_due_queues")]
