"""Orders to workers, audited and by permission: drain, stop, resize, leave a queue. Obeyed within a heartbeat."""

from collections.abc import Callable
from dataclasses import asdict, replace

from django.db import DatabaseError, InterfaceError

from django_pgbroker.conf import get_settings
from django_pgbroker.domain import verbs
from django_pgbroker.domain.errors import QueueNotServed, WorkerNotFound
from django_pgbroker.domain.names import check_queue_name, suggest
from django_pgbroker.domain.options import LARGEST_ID, read_whole
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.operations.actors import Acting, Actor, read_actor
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.operations.permissions import require
from django_pgbroker.store.audit import write_audit
from django_pgbroker.store.errors import wrap_database_error
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.orders import Standing, hold_worker, order_worker

#: What the largest pool of a worker can run at once, tasks of an event loop; threads and child processes are fewer.
MOST_CONCURRENCY = 10_000


def drain_worker(
    worker_id: int, *, actor: Acting, reason: str | None = None, source: str = "code", using: str | None = None
) -> bool:
    """Have a worker finish what runs, hand back what waits in it, and end.

    It hears of it with its next heartbeat. In an open transaction of the caller its heartbeats pass its row by, so it
    seems silent until the commit: keep such a transaction short.

    Args:
        worker_id: of its row, as in ``pgbroker_workers list``.
        actor: a user, whose permissions are checked, or a trusted name for the audit.
        reason: why, up to 200 characters.
        source: where the wish came from: ``code``, ``command``, ``ui`` or ``duty``.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Returns:
        Whether anything changed; False when it was asked so already, and then nothing is audited.

    Raises:
        WorkerNotFound: there is no such worker, or it has stopped.
        InvalidOption: an id that no worker can have, or words that cannot be shown.
        NotPermitted: the user may not do this.
        BrokerDatabaseError: the database refused; nothing has changed.
    """
    acting = read_actor(actor, source, reason)
    return _order(verbs.DRAIN_WORKER, worker_id, lambda now: replace(now, drain=True), acting, using)


def stop_worker(
    worker_id: int, *, actor: Acting, reason: str | None = None, source: str = "code", using: str | None = None
) -> bool:
    """Have a worker end at once: what runs is interrupted, costs no attempt, and runs again elsewhere.

    Arguments, answer and errors are those of ``drain_worker``.
    """
    acting = read_actor(actor, source, reason)
    return _order(verbs.STOP_WORKER, worker_id, lambda now: replace(now, stop=True), acting, using)


def resize_worker(
    worker_id: int,
    concurrency: int,
    *,
    actor: Acting,
    reason: str | None = None,
    source: str = "code",
    using: str | None = None,
) -> bool:
    """Have a worker run more or fewer handlers at once, until its process ends.

    It is the number of its threads; a worker without threads changes the tasks of its event loop, and one without these
    its child processes. Where there are fewer, what runs finishes, and nothing begins until there is room. Each thread
    and child process may need one more connection, which nobody counts anew.

    Args:
        worker_id: as for ``drain_worker``, and so are the rest, the answer and the errors.
        concurrency: 1 to 10,000; a worker runs 1,000 threads or 64 child processes at most, whatever it is told.
        actor, reason, source, using: as for ``drain_worker``.
    """
    size = read_whole("concurrency", concurrency, 1, MOST_CONCURRENCY)
    acting = read_actor(actor, source, reason)

    def change(now: Standing) -> Standing:
        return replace(now, ordered_concurrency=size)

    return _order(verbs.RESIZE_WORKER, worker_id, change, acting, using)


def pause_queue_on_worker(
    worker_id: int,
    queue: str,
    *,
    actor: Acting,
    reason: str | None = None,
    source: str = "code",
    using: str | None = None,
) -> bool:
    """Have one worker leave a queue, until it is told otherwise or its process ends: nothing of it begins there.

    What it has claimed ahead goes back, what runs finishes, other workers go on.

    Args:
        worker_id: as for ``drain_worker``, and so are the rest, the answer and the errors.
        queue: one that it serves; another one is ``QueueNotServed``, an ``InvalidOption`` that names those.
        actor, reason, source, using: as for ``drain_worker``.
    """
    check_queue_name(queue)

    def change(now: Standing) -> Standing:
        return replace(_require_served(now, queue), paused_queues=tuple(sorted({*now.paused_queues, queue})))

    return _order(verbs.PAUSE_ON_WORKER, worker_id, change, read_actor(actor, source, reason), using, queue=queue)


def resume_queue_on_worker(
    worker_id: int,
    queue: str,
    *,
    actor: Acting,
    reason: str | None = None,
    source: str = "code",
    using: str | None = None,
) -> bool:
    """Have one worker take up a queue again that it was told to leave, as ``pause_queue_on_worker`` says."""
    check_queue_name(queue)

    def change(now: Standing) -> Standing:
        return replace(_require_served(now, queue), paused_queues=tuple(sorted({*now.paused_queues} - {queue})))

    return _order(verbs.RESUME_ON_WORKER, worker_id, change, read_actor(actor, source, reason), using, queue=queue)


def _order(
    verb: Verb,
    worker_id: int,
    change: Callable[[Standing], Standing],
    acting: Actor,
    using: str | None,
    *,
    queue: str | None = None,
) -> bool:
    worker_id = read_whole("worker_id", worker_id, 1, LARGEST_ID)
    require(acting, verb, queue=queue)
    gateway = open_caller_gateway(using or get_settings().database)
    try:
        with gateway.all_or_nothing():
            standing = _require_running(hold_worker(gateway, worker_id), worker_id)
            wanted = change(standing)
            if wanted == standing:
                return False
            order_worker(gateway, worker_id, wanted)
            _audit(gateway, verb, worker_id, acting, standing, wanted)
    except (DatabaseError, InterfaceError) as error:
        raise wrap_database_error(error, f"give the worker {worker_id} an order") from error
    return True


def _require_running(standing: Standing | None, worker_id: int) -> Standing:
    remedy = "every start is a new one: pgbroker_workers list shows those that run"
    if standing is None:
        raise WorkerNotFound(f"there is no worker {worker_id}; {remedy}")
    if standing.end is not None:
        raise WorkerNotFound(f"the worker {worker_id} ({standing.name}) has ended ({standing.end}); {remedy}")
    return standing


def _require_served(standing: Standing, queue: str) -> Standing:
    if queue not in standing.queues:
        raise QueueNotServed(
            f"the worker {standing.name!r} does not serve the queue {queue!r}, but: "
            f"{', '.join(sorted(standing.queues))}. {suggest(queue, standing.queues)}".rstrip()
        )
    return standing


def _audit(  # noqa: PLR0917
    gateway: CallerGateway, verb: Verb, worker_id: int, acting: Actor, before: Standing, after: Standing
) -> None:
    was, is_now = asdict(before), asdict(after)
    changed = [key for key in was if was[key] != is_now[key]]
    write_audit(
        gateway,
        actor=acting.name,
        source=acting.source,
        action=verb.name,
        target={"worker": worker_id, "name": before.name},
        reason=acting.reason,
        before={key: was[key] for key in changed},
        after={key: is_now[key] for key in changed},
    )
