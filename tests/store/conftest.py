"""What the tests of the statements have at hand: three connections, rows, and a clock that can be held or moved."""

from collections.abc import Callable, Iterator

import pytest

from django_pgbroker.registry import JobType
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.runtime.database_clock import DatabaseClock
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.worker.executor import Directory
from django_pgbroker.worker.options import QueueShare, WorkerOptions
from django_pgbroker.worker.session import Session
from tests.maintenance.connections import gateway, rival, rows
from tests.maintenance.rows import Rows
from tests.store.gate import Gate
from tests.store.jobs import Shop

__all__ = ["gateway", "rival", "rows"]


@pytest.fixture
def shop(rows: Rows) -> Shop:
    """A queue and a job type, and jobs in them."""
    return Shop(rows)


@pytest.fixture
def gate(rows: Rows) -> Iterator[Gate]:
    """Holds a statement in mid-execution, after it has taken its snapshot."""
    made = Gate(rows)
    yield made
    made.remove()


@pytest.fixture
def move_clock(rows: Rows) -> Iterator[Callable[[str], None]]:
    """Moves the broker's clock by an interval."""
    original = rows.one("select pg_get_functiondef('pgbroker.clock()'::regprocedure)")

    def move(interval: str) -> None:
        rows.run(
            "create or replace function pgbroker.clock() returns timestamptz language sql stable parallel safe "
            f"as $$ select statement_timestamp() + interval '{interval}' $$"
        )

    yield move
    rows.run(original)


@pytest.fixture
def rivals(broker_database: None) -> Iterator[list[Gateway]]:
    """Four processes beside each other."""
    opened = [open_gateway("default", f"test rival {number}") for number in range(4)]
    yield opened
    for each in opened:
        each.connection.close()


@pytest.fixture
def session(rows: Rows) -> Iterator[Session]:
    """What a connected worker knows and holds."""
    name = "test worker"
    options = WorkerOptions(queues=(QueueShare("default"),), name=name)
    gateway = open_gateway("default", f"worker {name}")
    made = Session(options, gateway, rows.worker(), Directory({rows.job_type(): job_type}, {}, {}), [], DatabaseClock())
    yield made
    made.close()


def send_receipt(order_id: int) -> None:
    """The handler behind the jobs of these tests; nothing here runs it."""


job_type = JobType("shop.send_receipt", send_receipt)
