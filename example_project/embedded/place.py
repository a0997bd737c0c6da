"""The folder of one clone's server: where it is, who may enter, and the locks in it. Used by all modules beside it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

CLONE = Path(__file__).resolve().parents[2]
ROOT_PLACES = Path("/var/lib/django_pgbroker")
UNPRIVILEGED_USER = "nobody"
LONGEST_SOCKET_FOLDER = 85
IS_ROOT = os.geteuid() == 0


class EmbeddedServerError(Exception):
    """The server of this clone cannot be started or stopped; the message says why and what to do next."""


class Place(NamedTuple):
    """The folder that holds one clone's server. Everything in it may be thrown away."""

    home: Path

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def run(self) -> Path:
        """The server's own folder, closed to others: its log, and its socket."""
        return self.home / "run"

    @property
    def log(self) -> Path:
        return self.run / "server.log"

    @property
    def sockets(self) -> Path:
        """Where the socket is: elsewhere when the path would not fit into a socket address of about 100 bytes."""
        if len(os.fsencode(self.run)) <= LONGEST_SOCKET_FOLDER:
            return self.run
        return Path("/tmp") / f"pgbroker-{os.geteuid()}-{short_hash(self.home)}"  # noqa: S108 - made 0700, owner checked

    @property
    def wheel(self) -> Path:
        """Root's copy of the binaries, readable by the unprivileged server wherever the clone lies."""
        return self.home / "wheel"

    def open_lock(self, name: str) -> IO[str]:
        return (self.home / f"{name}.lock").open("a")


def place_of(clone: Path) -> Place:
    """Return where the server of ``clone`` lives: inside it, or for root, whom PostgreSQL refuses, elsewhere."""
    if IS_ROOT:
        return Place(ROOT_PLACES / short_hash(clone))
    return Place(clone / ".postgres")


def short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def make_home(place: Place) -> None:
    """Make the folder of ``place``; as root also forget the places of clones that are gone."""
    if not IS_ROOT:
        place.home.mkdir(mode=0o700, exist_ok=True)
        return
    ROOT_PLACES.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (ROOT_PLACES / "places.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place.home.mkdir(mode=0o755, exist_ok=True)
        (place.home / "clone").write_text(str(CLONE))
        for home in ROOT_PLACES.iterdir():
            remove_if_orphaned(Place(home))


def remove_if_orphaned(place: Place) -> None:
    """Delete the place of a clone that is gone: root's places lie outside the clones and would pile up."""
    note = place.home / "clone"
    if not note.is_file() or Path(note.read_text()).exists():
        return
    with place.open_lock("users") as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        delete(place)


def delete(place: Place) -> None:
    """Delete all files of ``place``; its server does not run."""
    for folder in {place.sockets, place.home}:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def gate(place: Place) -> Iterator[None]:
    """Let one process at a time start, stop or delete the server."""
    with place.open_lock("gate") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_private_folder(folder: Path) -> None:
    """Make ``folder`` the server's own, closed to everybody else.

    Raises:
        EmbeddedServerError: somebody else put something there first.
    """
    owner, group = server_ids()
    folder.mkdir(mode=0o700, exist_ok=True)
    if IS_ROOT:
        os.chown(folder, owner, group, follow_symlinks=False)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner:
        raise EmbeddedServerError(f"{folder} belongs to somebody else (uid {found.st_uid}).\nNext: remove it.")
    folder.chmod(0o700)


def server_ids() -> tuple[int, int]:
    """Return the user and group id that the server runs as."""
    if not IS_ROOT:
        return os.geteuid(), os.getegid()
    try:
        user = pwd.getpwnam(UNPRIVILEGED_USER)
    except KeyError:
        raise EmbeddedServerError(
            f"PostgreSQL does not run as root, and this system has no user {UNPRIVILEGED_USER!r}.\n"
            "Next: run as a normal user, or set DATABASE_URL to a server of yours."
        ) from None
    return user.pw_uid, user.pw_gid
