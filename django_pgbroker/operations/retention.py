"""What retention would let go at this moment. Read by ``pgbroker_retention`` and by the doctor."""

from dataclasses import dataclass
from datetime import datetime

from django_pgbroker.conf import get_settings
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.store.retention import count_default_rows, find_old_partitions


@dataclass(frozen=True, slots=True)
class DuePartition:
    """A partition whose whole history is past the limit; ``rows`` is an estimate, ``bytes`` counts its indexes too."""

    parent: str
    name: str
    lower: datetime | None
    upper: datetime | None
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What would go: whole partitions, and old rows that landed in a default partition (counted up to 100,001)."""

    days: int | None
    partitions: tuple[DuePartition, ...] = ()
    default_rows: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing is past the limit."""
        return not self.partitions and not self.default_rows


def plan_retention(using: str | None = None, days: int | None = None) -> RetentionPlan:
    """What is past the limit in a database, oldest first. Changes nothing.

    Args:
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.
        days: the limit; ``PGBROKER["RETENTION_DAYS"]`` unless given.

    Raises:
        ConfigurationError: there is no such alias, or it is not PostgreSQL.
        django.db.DatabaseError: the database is away, or the broker's migrations have not run there.
    """
    settings = get_settings()
    limit = settings.retention_days if days is None else days
    if limit is None:
        return RetentionPlan(None)
    gateway = open_caller_gateway(using or settings.database)
    return RetentionPlan(
        limit,
        tuple(DuePartition(*partition) for partition in find_old_partitions(gateway, limit)),
        sum(each.old for each in count_default_rows(gateway, limit)),
    )
