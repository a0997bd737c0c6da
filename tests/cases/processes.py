"""Workers of the cases that are processes of their own and reach the database in a special way."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cases.proxy import Proxy
from tests.scenarios.processes import ManageProcess


@contextmanager
def start_through(proxy: Proxy, *arguments: str, **settings: Any) -> Iterator[ManageProcess]:
    """A worker with one slot whose connections all go through the proxy; killed after the block.

    Args:
        proxy: before the test database.
        arguments: more of them.
        settings: of the broker.
    """
    worker = ManageProcess(
        ("pgbroker_worker", "--concurrency", "1", "--no-maintenance", *arguments), settings, proxy.database
    )
    try:
        yield worker.wait_until_ready()
    finally:
        worker.kill()
        print(f"--- worker {worker.pid}\n{worker.output}")  # noqa: T201 - shown by pytest where a test fails
