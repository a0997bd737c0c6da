"""Find and create the rows of queues, job types and tenants. Called by enqueue and where names are declared."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django_pgbroker.store.gateway import CallerGateway, separate_transaction

LOCK_TIMEOUT_MILLISECONDS = 2000


@dataclass(frozen=True)
class Names:
    """Names that should have rows.

    Args:
        queues: name to the seconds of ageing that a new queue gets.
        job_types: names of job types.
        tenants: names of tenants.
    """

    queues: Mapping[str, int] = field(default_factory=dict)
    job_types: Collection[str] = ()
    tenants: Collection[str] = ()

    def __bool__(self) -> bool:
        return bool(self.queues or self.job_types or self.tenants)


def find_missing_names(gateway: CallerGateway, queue: str, job_type: str, tenant: str) -> tuple[bool, bool, bool]:
    """Whether the queue, the job type and the tenant are missing, as the caller's transaction sees them.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    [found] = gateway.fetch_guarded("find_names", {"queue": queue, "job_type": job_type, "tenant": tenant})
    return not found[0], not found[1], not found[2]


def add_names(gateway: CallerGateway, names: Names) -> None:
    """Create the rows that do not exist. Never in a caller's transaction: every other first user would wait for it.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    queues = sorted(names.queues)
    gateway.execute(
        "add_names",
        {
            "queues": queues,
            "ageing": [names.queues[name] for name in queues],
            "job_types": sorted(names.job_types),
            "tenants": sorted(names.tenants),
        },
    )


def add_names_apart(alias: str, names: Names) -> None:
    """Create the rows that do not exist in a transaction of its own, on a second connection.

    Raises:
        django.db.DatabaseError: as the server answered, or no connection is to be had.
    """
    with separate_transaction(alias, LOCK_TIMEOUT_MILLISECONDS) as gateway:
        add_names(gateway, names)


def find_queue_names(gateway: CallerGateway) -> list[str]:
    """The names of all queues, sorted.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    return [str(name) for (name,) in gateway.fetch("find_queue_names")]
