"""Protect a worker's connections from handlers that fork. Called once in every process that runs handlers.

A forked process has copies of the sockets. Were it to use or to close one of them, it would do so in the middle of what
its parent says to the server. So it forgets Django's connections without a word, and opens its own.
"""

import os
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
