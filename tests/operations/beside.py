"""Run an operation beside the test, in a thread with a connection of its own."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection


@contextmanager
def beside(operation: Callable[[], Any]) -> Iterator[tuple[threading.Thread, list[Any]]]:
    """A thread to be started in the block, and the list that holds the answer after it."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(operation())
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    yield thread, answers
    thread.join(20)
    assert not thread.is_alive(), "the operation did not end within 20 s"
