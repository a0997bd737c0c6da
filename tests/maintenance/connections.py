"""Connections of the broker's own, as two processes would have them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from django_pgbroker.runtime.connections import open_connection, open_gateway
from django_pgbroker.store.gateway import Gateway
from tests.maintenance.rows import Rows
from tests.maintenance.waiting import wait_until


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


@contextmanager
def stopped_in_mid_statement(rows: Rows, run: Callable[[], object]) -> Iterator[list[object]]:
    """Within the block the statement stands at the clock, after its snapshot and before its locks.

    After the block it has gone on, and its answer is in the list.
    """
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(run()))
    rows.run("select pg_advisory_lock(42)")
    rows.run(
        "create or replace function pgbroker.clock() returns timestamptz language plpgsql stable parallel safe"
        " as $$ begin perform pg_advisory_xact_lock_shared(42); return statement_timestamp(); end $$"
    )
    try:
        thread.start()
        waiting = "select 1 from pg_locks where locktype = 'advisory' and objid = 42 and not granted"
        wait_until(lambda: rows.one(waiting), "the statement stands at the clock")
        yield answers
    finally:
        rows.run("select pg_advisory_unlock(42)")
        thread.join(20)
        rows.run(
            "create or replace function pgbroker.clock() returns timestamptz language sql stable parallel safe"
            " as $$ select statement_timestamp() $$"
        )


@pytest.fixture
def heard(broker_database: None) -> Iterator[object]:
    """Answers the names of queues that were announced, waiting for the first one."""
    connection = open_connection("default", "test listener")
    connection.execute("listen pgbroker_wake")

    def hear(count: int = 1) -> set[str]:
        return {notice.payload for notice in connection.notifies(timeout=10, stop_after=count)}

    yield hear
    connection.close()
