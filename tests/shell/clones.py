"""Clones for the tests of the embedded server: nothing here touches the server that other tests use."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from example_project.embedded.place import Place, place_of
from example_project.embedded.server import postmaster

SOURCE = Path(__file__).resolve().parents[2]
USER_OF_THE_SERVER = """
import sys, psycopg
from example_project import embedded
address = embedded.attach()
connection = psycopg.connect(host=address.host, user=address.user, dbname=address.database, autocommit=True)
print("attached", flush=True)
for statement in sys.stdin:
    cursor = connection.execute(statement)
    while cursor.nextset():
        pass
    print(cursor.fetchone()[0], flush=True)
"""


def wait_until(condition: Callable[[], object], seconds: float = 15) -> None:
    """Return when ``condition`` holds; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


class ServerUser:
    """A process that attaches to the server of a clone, stays connected, and runs statements that it is told."""

    def __init__(self, clone: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER_OF_THE_SERVER],
            cwd=clone,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def wait_until_attached(self) -> "ServerUser":
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        line = self.process.stdout.readline()
        assert line == "attached\n", line or self.process.stderr.read()
        return self

    def ask(self, statement: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(statement + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        self.process.communicate(timeout=15)

    def die(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=15)


class Clone:
    """A copy of what boots the server, in a folder whose name has a space, and the processes that use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.users: list[ServerUser] = []
        shutil.copytree(SOURCE / "example_project/embedded", folder / "example_project/embedded")
        shutil.copy(SOURCE / "example_project/__init__.py", folder / "example_project")

    @property
    def place(self) -> Place:
        return place_of(self.folder)

    def attach(self) -> ServerUser:
        return self.start_to_attach().wait_until_attached()

    def start_to_attach(self) -> ServerUser:
        self.users.append(ServerUser(self.folder))
        return self.users[-1]

    def command(self, name: str) -> None:
        subprocess.run(
            [sys.executable, "-S", "-m", "example_project.embedded", name], cwd=self.folder, check=True, timeout=60
        )

    @property
    def server(self) -> int | None:
        return postmaster(self.place)

    def processes(self, argument: str) -> list[int]:
        """Return the processes that work for this clone and have ``argument`` on their command line."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                arguments = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if argument in arguments and any(str(self.place.home) in part for part in arguments):
                found.append(int(process.name))
        return found

    def kill_users(self) -> None:
        for user in self.users:
            if user.process.poll() is None:
                user.die()
        self.users.clear()
        wait_until(lambda: self.server is None)

    def remove(self) -> None:
        self.kill_users()
        self.command("remove")


def as_root() -> bool:
    return os.geteuid() == 0
