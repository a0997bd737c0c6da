"""Keep Django's connections of a slot fit for the next job: alive before it, without a transaction after it.

A worker keeps connections open between jobs whatever CONN_MAX_AGE says (opening one costs milliseconds). What it asks
instead is nearly free: is there something to read on an idle socket (then the server has gone), is a transaction open.
"""

import select
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

#: A server that does not take the request to end a statement within this time is left alone.
_CANCEL_SECONDS = 2.0


class OpenTransaction(Exception):
    """The handler returned and left a transaction open: its writes were rolled back, so the job has failed."""


def drop_dead_connections() -> None:
    """Close the connections of this thread whose server has gone, so that the next query opens a new one."""
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is not None and not wrapper.in_atomic_block and _has_news(wrapper):
            wrapper.close()


def settle_connections(*, closes_all: bool = False) -> list[str]:
    """Throw away connections of this thread with an open transaction, and give pooled ones back.

    Args:
        closes_all: throw the others away too: something was done to them from outside.

    Returns:
        The aliases that had a transaction open; what was written in it is rolled back.
    """
    left_open = []
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is None:
            continue
        if _has_open_transaction(wrapper):
            left_open.append(wrapper.alias)
            _throw_away(wrapper)
        elif closes_all:
            _throw_away(wrapper)
        elif wrapper.settings_dict.get("OPTIONS", {}).get("pool"):
            wrapper.close()
    return left_open


def _has_news(wrapper: BaseDatabaseWrapper) -> bool:
    """An idle connection has nothing to say; one that was closed by the server is readable."""
    raw = wrapper.connection
    if getattr(raw, "closed", False):
        return True
    fileno = getattr(raw, "fileno", None)
    if fileno is None:
        return False
    poll = select.poll()
    try:
        poll.register(fileno(), select.POLLIN)
    except Exception:
        return True
    return bool(poll.poll(0))


def _has_open_transaction(wrapper: BaseDatabaseWrapper) -> bool:
    """Django's flags alone miss a raw BEGIN, the server's status alone misses autocommit switched off."""
    if wrapper.in_atomic_block or not wrapper.get_autocommit():
        return True
    info = getattr(wrapper.connection, "info", None)
    return info is not None and info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)


def cancel_statement(wrapper: BaseDatabaseWrapper) -> None:
    """Ask the server to end the statement it works on, which would go on although its client has gone.

    Safe from any thread; one that is idle is not touched, and a server that does not answer is left alone.
    """
    raw = wrapper.connection
    info = getattr(raw, "info", None)
    if info is not None and info.transaction_status == TransactionStatus.ACTIVE:
        with suppress(Exception):
            raw.cancel_safe(timeout=_CANCEL_SECONDS)


def _throw_away(wrapper: BaseDatabaseWrapper) -> None:
    """Close a connection in the middle of a transaction, and its wrapper too, which would stay unusable."""
    wrapper.run_on_commit = []
    cancel_statement(wrapper)
    with suppress(Exception):
        wrapper.close()
    del connections[wrapper.alias]


class _SettledThread(ThreadPoolExecutor):
    """One thread whose connections are as fit between two calls as those of a slot between two jobs."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(_call_settled, fn, *args, **kwargs)


def _call_settled(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    drop_dead_connections()
    try:
        value = function(*args, **kwargs)
    except BaseException:
        settle_connections()
        raise
    if aliases := settle_connections():
        raise OpenTransaction(
            f"sync code under asyncio.run returned with an open transaction on {', '.join(aliases)}; it was rolled "
            "back. Other jobs use this connection too: open and end a transaction within one sync function"
        )
    return value


_settled_context = ThreadSensitiveContext()
SyncToAsync.context_to_thread_executor[_settled_context] = _SettledThread(1, "pgbroker-asyncio")


def settle_asyncio() -> None:
    """In the current context, see to the connections of Django's ``a…`` methods under ``asyncio.run`` of a handler.

    asgiref runs them in one thread of the whole process, whose connection nobody else would look after.
    """
    SyncToAsync.thread_sensitive_context.set(_settled_context)
