"""Job types that exist for one test."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_pgbroker.domain.backoff import Constant
from django_pgbroker.operations.job_types import DeclaredJob, job
from django_pgbroker.registry import registry

#: How long a handler waits for its test at most.
PATIENCE_SECONDS = 20


class Gate:
    """A handler waits at it until the test opens it; the test can wait until handlers have arrived."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self.arrived = threading.Semaphore(0)

    def wait(self) -> None:
        """Called by a handler."""
        self.arrived.release()
        assert self._opened.wait(PATIENCE_SECONDS), "the test never opened the gate"

    def wait_until_arrived(self, count: int = 1) -> None:
        """Return when so many handlers have come."""
        for _ in range(count):
            assert self.arrived.acquire(timeout=PATIENCE_SECONDS), "no handler came to the gate"

    def open(self) -> None:
        """Let all pass, now and later."""
        self._opened.set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that opens by itself at the end of the test, so that no handler is left behind."""
    made = Gate()
    yield made
    made.open()


@pytest.fixture
def declare() -> Iterator[Callable[..., Callable[[Callable[..., Any]], DeclaredJob[..., Any]]]]:
    """Registers the decorated handler as ``tests.<its name>``, without a wait between attempts, for one test."""
    names: list[str] = []

    def declare(name: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], DeclaredJob[..., Any]]:
        def register(handler: Callable[..., Any]) -> DeclaredJob[..., Any]:
            names.append(name or f"tests.{handler.__name__}")
            return job(names[-1], **{"retry": Constant(0), **options})(handler)

        return register

    yield declare
    for name in names:
        registry._by_name.pop(name, None)
