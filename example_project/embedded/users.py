"""The server runs while any process uses it. Called by the database backend; the Makefile reaches it by __main__.py.

Every user holds a shared lock for life, which the kernel drops however the process ends. A keeper process waits for
the exclusive one: when it gets it, nobody is left, and it stops the server.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, NamedTuple

from example_project.embedded import server
from example_project.embedded.place import CLONE, EmbeddedServerError, Place, delete, gate, make_home, place_of

_held_locks: dict[Path, IO[str]] = {}


class Address(NamedTuple):
    """Where to connect. ``host`` is the folder of a Unix socket, ``port`` a part of its name: there is no TCP."""

    host: str
    port: int
    user: str
    database: str


def attach() -> Address:
    """Return the address of this clone's server, starting it when it does not run.

    Raises:
        EmbeddedServerError: the binaries are missing, or the server does not start.
    """
    place = place_of(CLONE)
    try:
        hold(place)
        with gate(place):
            keep(place)
            if server.postmaster(place) is None:
                server.start(place)
    except PermissionError as error:
        raise EmbeddedServerError(
            f"{error}\nNext: another user made it. Remove it as that user (`make clean`), or run as that user."
        ) from error
    return Address(str(place.sockets), server.PORT, server.SUPERUSER, server.DATABASE)


def hold(place: Place) -> None:
    """Count this process among the server's users until it ends. Waits while the keeper is just stopping the server."""
    if place.home in _held_locks:
        return
    make_home(place)
    lock = place.open_lock("users")
    fcntl.flock(lock, fcntl.LOCK_SH)
    _held_locks[place.home] = lock


def keep(place: Place) -> None:
    """See that a keeper runs. The caller holds the gate."""
    with place.open_lock("keeper") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        # The lock goes to the keeper with the open file: there is no moment without its holder.
        subprocess.Popen(
            [sys.executable, "-S", "-m", "example_project.embedded", "keep", str(place.home), str(lock.fileno())],
            cwd="/",
            env={**environment, "PYTHONPATH": str(CLONE)},
            pass_fds=[lock.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def stop_after_the_last_user(place: Place, keeper_lock: int) -> None:
    """Block until no process uses the server, then stop it. This is the keeper's whole life."""
    with place.open_lock("users") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        if is_still(users, place):
            server.stop(place)
        # Before the users' lock: a process that waits for that one must find no keeper, and start its own.
        os.close(keeper_lock)


def is_still(lock: IO[str], place: Place) -> bool:
    """Tell whether ``lock`` belongs to the place of today, which a `make clean` may have deleted and made anew."""
    try:
        return os.path.samestat(os.fstat(lock.fileno()), (place.home / "users.lock").stat())
    except FileNotFoundError:
        return False


def stop(place: Place) -> bool:
    """Stop the server of ``place``, also under its users. Return whether it ran."""
    if not place.home.exists():
        return False
    with gate(place):
        return server.stop(place)


def remove(place: Place) -> bool:
    """Stop the server of ``place`` and delete it with all its data. Return whether there was anything."""
    if not place.home.exists():
        return False
    with gate(place):
        server.stop(place)
        delete(place)
    return True
