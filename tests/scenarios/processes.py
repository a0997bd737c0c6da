"""Worker processes of a scenario, on the test database or on a server of their own."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from django.db import connections

from tests.maintenance.waiting import wait_until

PROJECT = Path(__file__).parent.parent.parent

#: Short leases; every duty comes soon.
QUICK = {
    "LEASE_SECONDS": 2, "HEARTBEAT_SECONDS": 0.5, "RECLAIM_INTERVAL_SECONDS": 0.2, "POLL_MAX_SECONDS": 0.5,
    "DRAIN_SECONDS": 20,
}  # fmt: skip


def database_of_this_run() -> dict[str, Any]:
    """The database of this test run, as settings for another process."""
    params = connections["default"].get_connection_params()
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": params["dbname"],
        "USER": params.get("user", ""),
        "PASSWORD": params.get("password", ""),
        "HOST": params.get("host", ""),
        "PORT": str(params.get("port", "")),
    }


class ManageProcess:
    """A running ``manage.py``; what it prints is collected line by line.

    Args:
        arguments: of ``manage.py``.
        settings: changes to the broker's settings.
        database: its entry of ``DATABASES``.
        more: further environment variables, such as another settings module.
    """

    def __init__(
        self,
        arguments: tuple[str, ...],
        settings: dict[str, Any],
        database: dict[str, Any],
        more: dict[str, str] | None = None,
    ) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "DATABASE_URL"}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=PROJECT,
            env={
                **environment,
                "DJANGO_SETTINGS_MODULE": "tests.scenarios.settings",
                "SCENARIO_DATABASE": json.dumps(database),
                "SCENARIO_PGBROKER": json.dumps({**QUICK, **settings}),
                **(more or {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines += []
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def says(self, text: str) -> bool:
        return text in self.output

    def wait_until_ready(self, workers: int = 1) -> "ManageProcess":
        """Return when the worker, or so many under a supervisor, have registered themselves."""
        wait_until(
            lambda: self.output.count("worker.started") >= workers or not self.lives, "the workers start", seconds=60
        )
        assert self.lives, self.output
        return self

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    @property
    def has_closed_output(self) -> bool:
        """Whether it and all processes that it started have ended."""
        return not self._reader.is_alive()

    def wait(self, seconds: float = 20) -> int:
        """Wait for the end and return the exit status."""
        status = self.process.wait(seconds)
        self._reader.join(5)
        return status

    def kill(self) -> None:
        if self.lives:
            self.process.kill()
        self.process.wait(10)
        self._reader.join(5)
