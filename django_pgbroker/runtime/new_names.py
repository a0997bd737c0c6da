"""Create the rows of queues, job types and tenants outside the caller's transaction.

Called by enqueue for names used for the first time, and after migrate and at a worker's start for declared ones.
"""

import threading
from collections.abc import Iterable

from django.db import DatabaseError, InterfaceError

from django_pgbroker.conf import Settings, get_settings
from django_pgbroker.domain.job_spec import JobSpec
from django_pgbroker.domain.names import DEFAULT_TENANT
from django_pgbroker.registry import registry
from django_pgbroker.store.errors import BrokerUnavailable, EnqueueConflict, find_sqlstate
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.names import Names, add_names, add_names_apart, find_missing_names

#: Longest wait for a second connection: a pooler that is full lets its clients wait for minutes.
LIMIT_SECONDS = 5.0


def create_missing_names(gateway: CallerGateway, spec: JobSpec) -> None:
    """Create those of a job's queue, job type and tenant that do not exist.

    In a transaction of the caller a second connection does it: a new row inside that transaction would block every
    other first user of the name until its end.

    Args:
        gateway: the caller's.
        spec: the job that needs the names.

    Raises:
        django.db.DatabaseError: no second connection within five seconds, or a transaction holds the name.
    """
    no_queue, no_job_type, no_tenant = find_missing_names(gateway, spec.queue, spec.job_type, spec.tenant)
    names = Names(
        queues={spec.queue: ageing_of(spec.queue, get_settings())} if no_queue else {},
        job_types=(spec.job_type,) if no_job_type else (),
        tenants=(spec.tenant,) if no_tenant else (),
    )
    if names:
        _add(gateway, names)


def declare_names(alias: str, queues: Iterable[str] = ()) -> None:
    """Create the rows of what the settings and the code declare: queues, job types and the default tenant.

    A queue that exists keeps its ageing: changing it means rewriting the order of the jobs that wait.

    Args:
        alias: a key of ``settings.DATABASES``.
        queues: further queues, such as those that a worker serves.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    settings = get_settings()
    queues = {settings.default_queue, *settings.routes.values(), *(settings.queues or {}), *queues}
    queues |= {
        each.queue
        for each in registry.all()
        if each.queue and (settings.queues is None or each.queue in settings.queues)
    }
    names = Names(
        queues={queue: ageing_of(queue, settings) for queue in queues},
        job_types=tuple(each.name for each in registry.all()),
        tenants=(DEFAULT_TENANT,),
    )
    _add(CallerGateway(alias), names)


def ageing_of(queue: str, settings: Settings) -> int:
    """The seconds of ageing that a new queue of this name gets."""
    declared = (settings.queues or {}).get(queue)
    return declared.ageing_seconds if declared else settings.ageing_seconds


def _add(gateway: CallerGateway, names: Names) -> None:
    if gateway.is_in_transaction:
        _add_in_thread(gateway.alias, names)
    else:
        add_names(gateway, names)


def _add_in_thread(alias: str, names: Names) -> None:
    failures: list[Exception] = []

    def add() -> None:
        try:
            add_names_apart(alias, names)
        except Exception as error:
            failures.append(error)

    helper = threading.Thread(target=add, name="pgbroker-new-names", daemon=True)
    helper.start()
    helper.join(LIMIT_SECONDS)
    if helper.is_alive():
        raise BrokerUnavailable(
            _explain(names, f"no second connection was to be had within {LIMIT_SECONDS:.0f} seconds")
        )
    if failures:
        [failure] = failures
        if not isinstance(failure, DatabaseError | InterfaceError):
            raise failure
        kind = EnqueueConflict if find_sqlstate(failure) == "55P03" else BrokerUnavailable
        raise kind.of(failure, _explain(names, str(failure).strip())) from failure


def _explain(names: Names, cause: str) -> str:
    given = [("queue", names.queues), ("job type", names.job_types), ("tenant", names.tenants)]
    listed = ", ".join(f"{kind} {name!r}" for kind, group in given for name in group)
    return (
        f"used for the first time: {listed}, and the rows could not be made on a second connection: {cause}. "
        "Declared names never need one: list the queue in PGBROKER['QUEUES'], the handler in jobs.py, and run migrate"
    )
