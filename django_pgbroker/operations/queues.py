"""Pause and resume queues, audited. For user code, commands and the admin."""

from collections.abc import Callable

from django.db import DatabaseError, InterfaceError

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import InvalidOption, UnknownQueue
from django_pgbroker.domain.names import check_queue_name, suggest
from django_pgbroker.domain.options import read_text
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.runtime.announcer import announce_on_commit
from django_pgbroker.store import pause
from django_pgbroker.store.errors import wrap_database_error
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.names import find_queue_names


def pause_queue(
    queue: str, *, actor: str, reason: str | None = None, source: str = "code", using: str | None = None
) -> bool:
    """Stop the claims of a queue within a second of the commit; running jobs go on, expiry too.

    Args:
        queue: its name.
        actor: who asks, for the audit.
        reason: shown beside the queue, up to 200 characters.
        source: where the wish came from, such as ``admin`` or ``command``.
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Returns:
        Whether anything changed; False when the queue was paused already, and then nothing is audited.

    Raises:
        UnknownQueue: there is no such queue.
        InvalidOption: an actor, reason or source that cannot be shown.
        BrokerDatabaseError: the database refused; nothing has changed.
    """
    return _change(pause.pause_queue, queue, actor, source, reason, using)


def resume_queue(
    queue: str, *, actor: str, reason: str | None = None, source: str = "code", using: str | None = None
) -> bool:
    """Let a paused queue be claimed again. Arguments, answer and errors are those of ``pause_queue``."""
    is_changed = _change(pause.resume_queue, queue, actor, source, reason, using)
    settings = get_settings()
    if is_changed and settings.listen:
        announce_on_commit(using or settings.database, queue)
    return is_changed


def _change(  # noqa: PLR0917
    verb: Callable[[CallerGateway, str, str, str, str | None], bool],
    queue: str,
    actor: str,
    source: str,
    reason: str | None,
    using: str | None,
) -> bool:
    check_queue_name(queue)
    named_actor, named_source = read_text("actor", actor), read_text("source", source)
    if named_actor is None or named_source is None:
        raise InvalidOption("actor and source must say who changes the queue and from where")
    gateway = open_caller_gateway(using or get_settings().database)
    try:
        is_changed = verb(gateway, queue, named_actor, named_source, read_text("reason", reason))
        names = [] if is_changed else find_queue_names(gateway)
    except (DatabaseError, InterfaceError) as error:
        raise wrap_database_error(error, f"change the queue {queue!r}") from error
    if not is_changed and queue not in names:
        raise UnknownQueue(f"there is no queue {queue!r}. {suggest(queue, names)}".rstrip())
    return is_changed
