"""Connections of the broker's own, as two processes would have them."""

from collections.abc import Iterator

import pytest

from django_pgbroker.runtime.connections import open_connection, open_gateway
from django_pgbroker.store.gateway import Gateway
from tests.maintenance.rows import Rows


@pytest.fixture
def gateway(broker_database: None) -> Iterator[Gateway]:
    """The connection of the process under test."""
    opened = open_gateway("default", "test")
    yield opened
    opened.connection.close()


@pytest.fixture
def rival(broker_database: None) -> Iterator[Gateway]:
    """The connection of another process."""
    opened = open_gateway("default", "test rival")
    yield opened
    opened.connection.close()


@pytest.fixture
def rows(broker_database: None) -> Iterator[Rows]:
    """Writes and reads rows beside both of them."""
    opened = open_gateway("default", "test rows", enable_seqscan="on", enable_sort="on")
    yield Rows(opened)
    opened.connection.close()


@pytest.fixture
def heard(broker_database: None) -> Iterator[object]:
    """Answers the names of queues that were announced, waiting for the first one."""
    connection = open_connection("default", "test listener")
    connection.execute("listen pgbroker_wake")

    def hear(count: int = 1) -> set[str]:
        return {notice.payload for notice in connection.notifies(timeout=10, stop_after=count)}

    yield hear
    connection.close()
