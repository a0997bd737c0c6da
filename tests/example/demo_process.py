"""The demo as a process beside the tests, and waiting for what it does."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from django.conf import settings

MANAGE = settings.BASE_DIR / "manage.py"


def eventually(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Return as soon as ``condition()`` holds; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"in {seconds} s it never happened: {what}"
        time.sleep(0.02)


class Demo:
    """``manage.py demo`` as a process of its own, or below a ``command`` such as make."""

    def __init__(
        self, output: Path, environment: dict[str, str], *arguments: str, command: tuple[str, ...] | None = None
    ) -> None:
        self.output = output
        self.seen: list[psutil.Process] = []
        with output.open("w") as file:
            self.process = subprocess.Popen(
                [*(command or (sys.executable, str(MANAGE), "demo")), *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def lines(self) -> list[str]:
        return self.output.read_text().splitlines()

    def wait_for(self, words: str) -> None:
        """Return when the demo has printed ``words``."""

        def is_there() -> bool:
            text = self.output.read_text()
            assert self.process.poll() is None or words in text, text
            return words in text

        eventually(is_there, f"the demo prints {words!r}")

    def family(self) -> list[psutil.Process]:
        """The demo and everything that it started."""
        own = psutil.Process(self.process.pid)
        self.seen = [own, *own.children(recursive=True)]
        return self.seen

    def kill(self) -> None:
        """End all that is left after a test, whatever the demo does about it."""
        if self.process.poll() is None:
            self.family()
            self.process.kill()
            self.process.wait()
        for process in self.seen:
            if is_alive(process):
                process.kill()
        all_gone(self.seen)

    def address(self) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+/admin/", self.output.read_text())
        assert found
        return found.group()

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


def all_gone(family: list[psutil.Process]) -> None:
    """Fail unless all of ``family`` end soon. One that only waits to be reaped by its new parent has ended."""
    eventually(lambda: not any(is_alive(process) for process in family), "the last process ends", seconds=20)


def is_alive(process: psutil.Process) -> bool:
    """Whether a process still does anything."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
