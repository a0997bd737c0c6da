"""Workers in threads of the test's process, without signals."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_pgbroker.worker.options import WorkerOptions, parse_queues
from django_pgbroker.worker.worker import Worker
from tests.worker.handlers import Gate

LIMIT_SECONDS = 30

#: Every look comes soon, so that no test depends on a notification unless it says so.
QUICK = {"POLL_MAX_SECONDS": 0.1, "DRAIN_SECONDS": 10}


@pytest.fixture(autouse=True)
def quick_settings(settings: Any) -> None:
    """Workers that look often."""
    settings.PGBROKER = QUICK


class WorkerThread:
    """One worker, and how it ended."""

    def __init__(self, queues: str, concurrency: int, *, until_empty: bool, **more: Any) -> None:
        options = WorkerOptions(parse_queues(queues), concurrency, until_empty=until_empty, **more)
        self.worker = Worker(options)
        self.status: int | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.status = self.worker.run()
        except BaseException as error:
            self.error = error

    def start(self) -> "WorkerThread":
        self._thread.start()
        return self

    @property
    def lives(self) -> bool:
        return self._thread.is_alive()

    def join(self) -> int | None:
        """Wait for the end, raise what the worker raised, and return its exit status."""
        self._thread.join(LIMIT_SECONDS)
        assert not self.lives, f"the worker did not end within {LIMIT_SECONDS} s"
        if self.error:
            raise self.error
        return self.status

    def drain(self) -> int | None:
        """Ask it to drain and wait for its end."""
        self.worker.stopping.request_drain()
        return self.join()


@pytest.fixture
def start(broker_database: None, gate: Gate) -> Iterator[Callable[..., WorkerThread]]:
    """Starts workers; those that still run at the end of the test are stopped, and none of them may have crashed."""
    started: list[WorkerThread] = []

    def start(queues: str = "default", concurrency: int = 2, *, until_empty: bool = False, **more: Any) -> WorkerThread:
        started.append(WorkerThread(queues, concurrency, until_empty=until_empty, **more).start())
        return started[-1]

    yield start
    gate.open()
    for worker in started:
        worker.worker.stopping.request_drain()
    for worker in started:
        worker.join()


@pytest.fixture
def run_until_empty(start: Callable[..., WorkerThread]) -> Callable[..., int | None]:
    """Runs a worker until its queues are empty and returns its exit status."""

    def run_until_empty(queues: str = "default", concurrency: int = 2, **more: Any) -> int | None:
        return start(queues, concurrency, until_empty=True, **more).join()

    return run_until_empty
