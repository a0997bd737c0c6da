"""Worker processes, the tables that their handlers write to, and what is checked after every scenario."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from django_pgbroker.operations.handles import JobHandle
from django_pgbroker.operations.job_types import DeclaredJob, Producer
from tests.maintenance.connections import gateway, rows
from tests.maintenance.rows import Rows
from tests.scenarios.executor_jobs import executor_jobs
from tests.scenarios.history import check_history
from tests.scenarios.processes import ManageProcess, database_of_this_run

__all__ = ["executor_jobs", "gateway", "rows"]

TABLES = """
create table effect (
    id bigint generated always as identity primary key, at timestamptz not null default clock_timestamp(),
    job_id bigint not null, lease_token bigint not null, process_id int not null, what text not null
);
create table gate (name text primary key);
"""


class Story:
    """What the handlers of a scenario did, and the gates that they wait at."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.job_ids: list[int] = []

    def enqueue(self, job: Producer | DeclaredJob[..., Any], **arguments: Any) -> JobHandle:
        handle = job.enqueue(**arguments)
        self.job_ids.append(handle.id)
        return handle

    def open(self, gate: str) -> None:
        self._rows.run("insert into gate values (%s) on conflict do nothing", gate)

    def count(self, what: str, job_id: int | None = None) -> int:
        """How often handlers have told this."""
        return int(
            self._rows.one(
                "select count(*) from effect where what = %s and job_id = coalesce(%s::bigint, job_id)", what, job_id
            )
        )


@pytest.fixture
def story(broker_database: None, rows: Rows) -> Iterator[Story]:
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
    yield Story(rows)
    with connection.cursor() as cursor:
        cursor.execute("drop table effect, gate")


@pytest.fixture
def start(story: Story) -> Iterator[Callable[..., ManageProcess]]:
    """Starts workers; they are killed at the end, and then the history of every job must make sense."""
    started: list[ManageProcess] = []

    def start(*arguments: str, settings: dict[str, Any] | None = None, wait: bool = True) -> ManageProcess:
        process = ManageProcess(("pgbroker_worker", *arguments), settings or {}, database_of_this_run())
        started.append(process)
        return process.wait_until_ready() if wait else process

    yield start
    for process in started:
        process.kill()
        if process.output:
            print(f"--- worker {process.pid}\n{process.output}")  # noqa: T201 - shown by pytest where a test fails
    check_history(story.job_ids)
