"""Start and stop the server process. The caller holds the gate of the place; see users.py."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from example_project.embedded.place import (
    IS_ROOT,
    EmbeddedServerError,
    Place,
    make_private_folder,
    server_ids,
)
from example_project.embedded.wheel import programs

SUPERUSER = "postgres"
DATABASE = "pgbroker"
PORT = 5432
START_SECONDS = 60
STOP_SECONDS = 20
AFRESH = "Next: `make clean` starts afresh."


def start(place: Place) -> None:
    """Start the server, making its data first when there are none.

    Raises:
        EmbeddedServerError: it does not start; the message holds the end of its log.
    """
    binaries = programs(place)
    for folder in {place.run, place.sockets}:
        make_private_folder(folder)
    if not place.data.exists():
        create_data(place, binaries)
    check_version(place, binaries)
    write_configuration(place)
    command = [binaries / "pg_ctl", "-D", place.data, "-w", "-t", START_SECONDS, "-l", place.log, "start"]
    deadline = time.monotonic() + START_SECONDS
    while True:
        # Whoever they name is gone: PostgreSQL itself would take a zombie or a stranger with that number for a server.
        (place.data / "postmaster.pid").unlink(missing_ok=True)
        (place.sockets / f".s.PGSQL.{PORT}.lock").unlink(missing_ok=True)
        already_logged = place.log.stat().st_size if place.log.exists() else 0
        # The server inherits neither pipe: whoever reads our output would wait for it for ever.
        if run_as_server(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return
        complaint = read_log(place, already_logged)
        # Backends of a killed server hold its shared memory until they notice.
        if "pre-existing shared memory block" not in complaint or time.monotonic() > deadline:
            raise EmbeddedServerError(f"PostgreSQL did not start:\n{complaint}\n{AFRESH}")
        time.sleep(0.1)


def create_data(place: Place, binaries: Path) -> None:
    """Make the data under another name and rename them when complete, so that ``data`` is never half made.

    A starter that was killed may leave an initdb at work: it goes on in a folder that nobody else uses.
    """
    for left_over in place.home.glob("unfinished-*"):
        shutil.rmtree(left_over, ignore_errors=True)
    fresh = place.home / f"unfinished-{os.getpid()}-{time.monotonic_ns()}"
    make_private_folder(fresh)
    # This locale is part of PostgreSQL: none of the system's is needed, and every machine sorts alike.
    locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    run([binaries / "initdb", "-D", fresh, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-sync", *locale])
    run([binaries / "postgres", "--single", "-D", fresh, "postgres"], f"create database {DATABASE}\n")
    with (fresh / "postgresql.conf").open("a") as configuration:
        configuration.write("\ninclude '../embedded.conf'\n")
    fresh.rename(place.data)


def write_configuration(place: Place) -> None:
    sockets = str(place.sockets).replace("'", "''").replace('"', '""')
    path = place.home / "embedded.conf"
    # Nothing about durability: the demo and the crash tests rest on its defaults.
    path.write_text(
        "listen_addresses = ''\n"
        f"port = {PORT}\n"
        f"unix_socket_directories = '\"{sockets}\"'\n"
        "max_connections = 200\n"
        "shared_preload_libraries = 'pg_stat_statements'\n"
    )
    path.chmod(0o644)


def check_version(place: Place, binaries: Path) -> None:
    made_by = (place.data / "PG_VERSION").read_text().strip()
    installed = run([binaries / "postgres", "--version"]).split()[2]
    if installed.split(".")[0] != made_by:
        raise EmbeddedServerError(f"the data are of PostgreSQL {made_by}, and {installed} is installed.\n{AFRESH}")


def read_log(place: Place, offset: int) -> str:
    if not place.log.exists():
        return "(no log was written)"
    with place.log.open(errors="replace") as log:
        log.seek(offset)
        return "\n".join(log.read().splitlines()[-20:])


def run(command: list[Any], text: str | None = None) -> str:
    """Run one of PostgreSQL's programs and return what it printed."""
    given: dict[str, Any] = {} if text is None else {"input": text}
    done = run_as_server(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **given)
    if done.returncode:
        raise EmbeddedServerError(f"{Path(command[0]).name} failed:\n{done.stdout}\n{AFRESH}")
    return done.stdout


def run_as_server(command: list[Any], **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_", "LANG"))}
    if IS_ROOT:
        user, group = server_ids()
        options.update(user=user, group=group, extra_groups=[])
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return subprocess.run(
        [str(part) for part in command],
        cwd="/",
        env={**environment, "LC_ALL": "C"},
        text=True,
        timeout=2 * START_SECONDS,
        check=False,
        **options,
    )


def stop(place: Place) -> bool:
    """Ask for a fast shutdown, and after a while for an immediate one; return whether it ran, when it is gone.

    Raises:
        EmbeddedServerError: it is still there.
    """
    # Not `pg_ctl stop`: it believes the number in a stale file, and might signal a stranger.
    has_run = False
    for order in (signal.SIGINT, signal.SIGQUIT):
        pid = postmaster(place)
        if pid is None:
            return has_run
        has_run = True
        os.kill(pid, order)
        deadline = time.monotonic() + STOP_SECONDS
        while serves(pid, place.data) and time.monotonic() < deadline:
            time.sleep(0.02)
    if postmaster(place) is not None:
        raise EmbeddedServerError(f"PostgreSQL of {place.home} does not stop.\nNext: look into {place.log}.")
    return has_run


def postmaster(place: Place) -> int | None:
    """Return the process id of the running server, or None: also when that number now belongs to somebody else."""
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
    shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], stdout=subprocess.PIPE, check=False)  # noqa: S607
    return os.fsencode(data) in shown.stdout
