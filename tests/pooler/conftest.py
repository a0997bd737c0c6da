"""PgBouncer before the test database, workers that know of nothing else, and the test's own alias put behind it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from django_pgbroker.runtime.announcer import close_announcer
from tests.admin.conftest import operator
from tests.maintenance.connections import rows
from tests.pooler.bouncer import Bouncer
from tests.scenarios.conftest import Story, story
from tests.scenarios.history import check_history
from tests.scenarios.processes import ManageProcess
from tests.worker.handlers import declare

__all__ = ["declare", "operator", "rows", "story"]

POOLED = {"TRANSACTION_POOLER": True}


@pytest.fixture
def bounce(broker_database: None, tmp_path: Path) -> Iterator[Callable[[int], Bouncer]]:
    """Starts PgBouncer with a pool of a size; it is killed at the end."""
    started: list[Bouncer] = []

    def bounce(pool_size: int) -> Bouncer:
        started.append(Bouncer(tmp_path, pool_size))
        return started[-1].start()

    yield bounce
    for bouncer in started:
        bouncer.kill()
        print(f"--- PgBouncer\n{bouncer.log}")  # noqa: T201 - shown by pytest where a test fails


@pytest.fixture
def bouncer(bounce: Callable[[int], Bouncer]) -> Bouncer:
    """With three server connections, fewer than its clients."""
    return bounce(3)


@pytest.fixture
def start(story: Story) -> Iterator[Callable[..., ManageProcess]]:
    """Starts workers behind a bouncer; killed at the end, when the history of every job must make sense."""
    started: list[ManageProcess] = []

    def start(bouncer: Bouncer, *arguments: str, wait: bool = True, **settings: Any) -> ManageProcess:
        process = ManageProcess(
            ("pgbroker_worker", *arguments),
            {**POOLED, **settings},
            bouncer.database,
            {"DJANGO_SETTINGS_MODULE": "tests.pooler.settings", "POOLER_DIRECT": json.dumps(bouncer.direct)},
        )
        started.append(process)
        return process.wait_until_ready() if wait else process

    yield start
    for process in started:
        process.kill()
        print(f"--- worker {process.pid}\n{process.output}")  # noqa: T201 - shown by pytest where a test fails
    check_history(story.job_ids)


@contextmanager
def moved_behind(bouncer: Bouncer) -> Iterator[None]:
    """Within the block the alias ``default`` of this process goes through the bouncer, in all its threads."""
    given = connection.settings_dict
    before = dict(given)
    connection.close()
    given.update({**bouncer.database, "NAME": given["NAME"]})
    try:
        yield
    finally:
        assert close_announcer(10)
        connections["default"].close()
        given.clear()
        given.update(before)


@pytest.fixture
def behind(bouncer: Bouncer, settings: Any) -> Iterator[Bouncer]:
    """This process is behind the bouncer, and its settings say so."""
    settings.PGBROKER = POOLED
    with moved_behind(bouncer):
        yield bouncer
