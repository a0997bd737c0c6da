"""The test database. PostgreSQL itself needs nothing here: the backend starts it on the first connection."""

import fcntl
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO

import pytest
from django.db import connections

pytest_plugins = ["tests.fixtures.database"]

LOCKS = Path(__file__).parent.parent / ".tools"


#: Folders and files whose tests start whole projects and processes: together they take as long as all others.
SLOW = {
    "bench", "browser", "cases", "drills", "example", "histories", "migrations", "pooler", "scenarios", "shell",
    "versions",
    "management/test_exits.py", "management/test_processes.py", "management/test_reaper.py",
    "management/test_status_watch.py", "management/test_worker.py", "store/test_reorder_plan.py",
    "worker/test_b063_time_outs.py", "worker/test_child_stops.py", "worker/test_children.py",
    "worker/test_event_loop_stops.py", "worker/test_local_orders.py", "worker/test_orders.py",
    "worker/test_recycling.py", "worker/test_renewals.py", "worker/test_timeouts.py",
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow tests, unless the command line names what to run."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    for item in items:
        path = item.path.relative_to(Path(__file__).parent)
        if SLOW & {path.parts[0], path.as_posix()}:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> Iterator[None]:
    """Give each of several test runs at the same time a database of its own: test_pgbroker, test_pgbroker_2, …"""
    LOCKS.mkdir(exist_ok=True)
    settings = connections["default"].settings_dict
    name = settings["TEST"]["NAME"] or f"test_{settings['NAME']}"
    free, lock = first_free(name)
    settings["TEST"]["NAME"] = free
    with lock:
        yield
        # The database is dropped before this fixture ends, so the name is free again.


def first_free(name: str) -> tuple[str, IO[str]]:
    for number in count(1):
        candidate = name if number == 1 else f"{name}_{number}"
        lock = (LOCKS / f"{candidate}.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return candidate, lock
    raise AssertionError("unreachable")
