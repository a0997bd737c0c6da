"""Pause, resume and set queues, audited and by permission. For user code, commands and the admin."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import DatabaseError, InterfaceError

from django_pgbroker.conf import LONGEST_AGEING_SECONDS, get_settings
from django_pgbroker.domain import verbs
from django_pgbroker.domain.errors import InvalidOption, UnknownQueue
from django_pgbroker.domain.names import check_queue_name, suggest
from django_pgbroker.domain.options import Instant, Moment, read_moment, read_whole
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.operations.actors import Acting, Actor, read_actor
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.operations.permissions import require
from django_pgbroker.operations.reordering import reorder_queue
from django_pgbroker.runtime.announcer import announce_on_commit
from django_pgbroker.store import pause
from django_pgbroker.store.audit import write_audit
from django_pgbroker.store.errors import wrap_database_error
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.names import find_queue_names
from django_pgbroker.store.queue_order import set_queue_ageing


class QueueChange(NamedTuple):
    """What came of ``set_queue``.

    Args:
        is_changed: whether the setting was another one before.
        reordered: how many jobs have another place now.
        is_complete: whether none can be left in the old order; else call it again later, with the same value.
    """

    is_changed: bool
    reordered: int
    is_complete: bool


def pause_queue(
    queue: str,
    *,
    actor: Acting,
    reason: str | None = None,
    until: Moment | None = None,
    source: str = "code",
    using: str | None = None,
) -> bool:
    """Stop the claims of a queue within a second of the commit; running jobs go on, expiry too.

    A queue that is paused already gets the new reason and end in place of the old ones; what is not given is gone.

    Args:
        queue: its name.
        actor: a user, whose permissions are checked, or a trusted name for the audit.
        reason: shown beside the queue, up to 200 characters.
        until: a span from now, as a timedelta or seconds, or an aware time: then a duty resumes the queue within ten
            seconds. By default it stays paused until somebody resumes it.
        source: where the wish came from: ``code``, ``command``, ``ui`` or ``duty``.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Returns:
        Whether anything changed; False when the queue was paused in this way already, and then nothing is audited.

    Raises:
        UnknownQueue: there is no such queue.
        InvalidOption: an actor, reason or source that cannot be shown, or an end that is over.
        NotPermitted: the user may not do this.
        BrokerDatabaseError: the database refused; nothing has changed.
    """
    end = _read_end(until)

    def change(gateway: CallerGateway, acting: Actor) -> bool:
        return pause.pause_queue(gateway, queue, acting.name, acting.source, acting.reason, end)

    return _change(verbs.PAUSE_QUEUE, change, queue, read_actor(actor, source, reason), using)


def resume_queue(
    queue: str, *, actor: Acting, reason: str | None = None, source: str = "code", using: str | None = None
) -> bool:
    """Let a paused queue be claimed again. Arguments, answer and errors are those of ``pause_queue``."""

    def change(gateway: CallerGateway, acting: Actor) -> bool:
        return pause.resume_queue(gateway, queue, acting.name, acting.source, acting.reason)

    is_changed = _change(verbs.RESUME_QUEUE, change, queue, read_actor(actor, source, reason), using)
    if is_changed:
        _announce(queue, using)
    return is_changed


def set_queue(
    queue: str,
    *,
    ageing_seconds: int,
    actor: Acting,
    reason: str | None = None,
    source: str = "code",
    using: str | None = None,
) -> QueueChange:
    """Change by how much waiting outweighs priority in a queue, and bring its jobs into the new order.

    The setting is committed first and counts for all jobs to come; then the jobs that are there move, in batches that
    are committed one by one. Whatever ends it in the middle, a call with the same value does the rest. In the caller's
    transaction all of it is the caller's, and jobs that others enqueue before its commit keep the old order.

    Args:
        queue: its name.
        ageing_seconds: after so much waiting a job counts as one priority higher; 0 is strict order of time.
        actor, reason, source, using: as for ``pause_queue``.

    Returns:
        What has changed; the setting and, where there were any, the number of moved jobs are audited.

    Raises:
        UnknownQueue: there is no such queue.
        InvalidOption: a number out of bounds, or words that cannot be shown.
        NotPermitted: the user may not do this.
        BrokerDatabaseError: the database refused; batches that were committed stay.
    """
    seconds = read_ageing(ageing_seconds)
    acting = read_actor(actor, source, reason)

    def change(gateway: CallerGateway, acting: Actor) -> bool:
        return set_queue_ageing(gateway, queue, seconds, acting.name, acting.source, acting.reason)

    is_changed = _change(verbs.SET_QUEUE, change, queue, acting, using)
    gateway = open_caller_gateway(using or get_settings().database)
    try:
        moved, is_complete = reorder_queue(gateway, queue)
        if moved:
            _audit_order(gateway, queue, acting, {"ageing_seconds": seconds, "reordered": moved})
    except (DatabaseError, InterfaceError) as error:
        raise wrap_database_error(error, f"bring the jobs of the queue {queue!r} into order") from error
    if moved:
        _announce(queue, using)
    return QueueChange(is_changed, moved, is_complete)


def read_ageing(value: object) -> int:
    """The checked ageing of a queue, in seconds.

    Raises:
        InvalidOption: it is no whole number, or out of bounds.
    """
    return read_whole("ageing_seconds", value, 0, LONGEST_AGEING_SECONDS)


def _change(
    verb: Verb, change: Callable[[CallerGateway, Actor], bool], queue: str, acting: Actor, using: str | None
) -> bool:
    check_queue_name(queue)
    require(acting, verb, queue=queue)
    gateway = open_caller_gateway(using or get_settings().database)
    try:
        is_changed = change(gateway, acting)
        names = [] if is_changed else find_queue_names(gateway)
    except (DatabaseError, InterfaceError) as error:
        raise wrap_database_error(error, f"change the queue {queue!r}") from error
    if not is_changed and queue not in names:
        raise UnknownQueue(f"there is no queue {queue!r}. {suggest(queue, names)}".rstrip())
    return is_changed


def _read_end(until: Moment | None) -> Instant:
    end = read_moment("until", until)
    if end.seconds == 0 or (end.at is not None and end.at <= datetime.now(UTC)):
        raise InvalidOption(f"until must lie ahead, not at {until}; leave it out for a pause without an end")
    return end


def _audit_order(gateway: CallerGateway, queue: str, acting: Actor, after: dict[str, Any]) -> None:
    write_audit(
        gateway,
        actor=acting.name,
        source=acting.source,
        action=verbs.SET_QUEUE.name,
        target={"queue": queue},
        reason=acting.reason,
        after=after,
        count=after["reordered"],
    )


def _announce(queue: str, using: str | None) -> None:
    settings = get_settings()
    if settings.listen:
        announce_on_commit(using or settings.database, queue)
