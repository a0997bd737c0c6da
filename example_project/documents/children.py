"""The worker and the web server of the demo, as processes that never outlive it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import Self

from django.conf import settings

STOP_SECONDS = 15
HURRIED_SECONDS = 2
_TAIL_BYTES = 4000


class ChildEnded(Exception):
    """A child stopped although nobody asked it to; the end of what it wrote is in the text."""


class Child:
    """A ``manage.py`` command on a leash: it stops when asked, and when this process dies in whatever way."""

    def __init__(self, name: str, *arguments: str) -> None:
        self.name = name
        # Nameless: nothing is left to delete when this process is killed.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "example_project.documents.leash", *arguments],
            cwd=settings.BASE_DIR,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches the whole foreground group; a worker that saw it and our order would count two signals.
            start_new_session=True,
        )

    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def check_alive(self) -> None:
        """Raise ChildEnded when the process has ended."""
        if self.has_ended():
            status = self._process.returncode
            raise ChildEnded(f"The {self.name} ended by itself with status {status}. It wrote last:\n{self.tail()}")

    def tail(self) -> str:
        """Return the end of what the process wrote."""
        # pread: the child shares this file's position.
        size = os.fstat(self._output.fileno()).st_size
        written = os.pread(self._output.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES))
        return written.decode(errors="replace").strip() or "(nothing)"

    def let_go(self) -> None:
        """Ask the process to stop."""
        if self._process.stdin:
            self._process.stdin.close()

    def wait(self, seconds: float) -> None:
        """Wait up to ``seconds`` for the process to end, then kill it and whatever it started."""
        try:
            self._process.wait(max(0, seconds))
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Children:
    """Context manager around the children: on the way out all are stopped, together."""

    def __init__(self) -> None:
        self._started: list[Child] = []
        self._stop_seconds = STOP_SECONDS

    def start(self, name: str, *arguments: str) -> Child:
        """Start ``manage.py arguments`` as a child; ``name`` is how messages call it."""
        child = Child(name, *arguments)
        self._started.append(child)
        return child

    def forget(self, child: Child) -> None:
        """Drop a child that has ended."""
        self._started.remove(child)

    def hurry(self) -> None:
        """Do not let the children finish what they do: without a database they cannot."""
        self._stop_seconds = HURRIED_SECONDS

    def check_alive(self) -> None:
        """Raise ChildEnded when one of the processes has ended."""
        for child in self._started:
            child.check_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # A Ctrl-C now would leave the rest running; it is handled once all are gone.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        try:
            self._stop()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _stop(self) -> None:
        for child in self._started:
            child.let_go()
        deadline = time.monotonic() + self._stop_seconds
        for child in self._started:
            child.wait(deadline - time.monotonic())
        self._started.clear()
