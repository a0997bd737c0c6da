"""Protect a worker and its connections from handlers that fork. Used in every process that runs handlers.

A forked process has copies of the sockets. Were it to use or to close one of them, it would do so in the middle of what
its parent says to the server. So it forgets Django's connections without a word, and opens its own.
"""

import os
import sys
import traceback
from functools import cache
from typing import Any

from django.db import connections

#: What a fork has forgotten; kept, so that no destructor says good-bye to the server on the parent's socket.
_forgotten: list[Any] = []


@cache
def protect_forks() -> None:
    """From now on every fork of this process begins without a connection of Django's."""
    os.register_at_fork(after_in_child=_forget_connections)


def _forget_connections() -> None:
    for wrapper in connections.all(initialized_only=True):
        _forgotten.append(wrapper)
        if pools := getattr(type(wrapper), "_connection_pools", None):
            _forgotten.append(pools.copy())
            pools.clear()
        del connections[wrapper.alias]


def end_fork(process_id: int) -> None:
    """End this process where it is a fork that came back from the handler which made it.

    Else it would be a second worker without a main thread: it would judge the job that its parent still runs, and take
    the next ones from the copy of the backlog.

    Args:
        process_id: of the process in which the handler began.
    """
    if os.getpid() == process_id:
        return
    if sys.exception():
        traceback.print_exc()
    os._exit(1 if sys.exception() else 0)
