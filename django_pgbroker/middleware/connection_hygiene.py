"""``ConnectionHygieneMiddleware``: session settings that a handler changed do not reach the next job.

That connections live and have no transaction open is always seen to; this is for handlers that say ``SET``.
"""

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_pgbroker.worker.context import JobContext


class ConnectionHygieneMiddleware:
    """After each handler: ``RESET ALL`` on Django's connections that it used, and what the project sets on new ones.

    Costs a round trip or two for each connection that the slot holds, none for slots without one. Roles, advisory
    locks, temporary tables and LISTEN stay; a connection that cannot be reset is closed.

    Args:
        call_next: the next middleware, or the handler.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, call_next: Callable[[JobContext], Any]) -> None:
        self._call_next = call_next
        self._is_async = iscoroutinefunction(call_next)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, ctx: JobContext) -> Any:
        """Called for every job."""
        if self._is_async:
            return self._acall(ctx)
        try:
            return self._call_next(ctx)
        finally:
            reset_sessions()

    async def _acall(self, ctx: JobContext) -> Any:
        try:
            return await self._call_next(ctx)
        finally:
            # the connections of async code live in the thread of its synchronous calls
            await sync_to_async(reset_sessions, thread_sensitive=True)()


def reset_sessions() -> None:
    """Reset every connection of this thread that is open and in no transaction; those are thrown away anyway."""
    for wrapper in connections.all(initialized_only=True):
        if wrapper.vendor == "postgresql" and wrapper.connection is not None and not wrapper.in_atomic_block:
            try:
                _reset(wrapper)
            except Exception:
                wrapper.close()


def _reset(wrapper: BaseDatabaseWrapper) -> None:
    if not wrapper.get_autocommit():
        return
    wrapper.connection.execute("reset all", prepare=False)
    wrapper.ensure_timezone()
    connection_created.send(sender=wrapper.__class__, connection=wrapper)
