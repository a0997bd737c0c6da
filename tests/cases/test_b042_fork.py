"""B042: a handler whose forked processes use the database leaves the worker's connections whole."""

import pytest

from django_pgbroker.domain.states import JobState
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs

QUEUES = {"threads": {"executor": "thread"}, "children": {"executor": "process"}}


@pytest.mark.parametrize("queue", list(QUEUES))
def test_b042_a_hundred_jobs_that_fork_and_ask_the_database_all_complete(  # noqa: PLR0917
    start_process, story, rows, settings, queue, executor_jobs
):
    settings.PGBROKER = {"QUEUES": QUEUES, "DEFAULT_QUEUE": queue}
    worker = start_process(
        "--queues", queue, "--concurrency", "3", "--child-processes", "2", "--settings",
        "tests.scenarios.executor_settings", settings=settings.PGBROKER,
    )  # fmt: skip
    handles = [story.enqueue(executor_jobs.fork) for _ in range(100)]

    wait_until(lambda: all(handle.status().is_finished for handle in handles), "all end", seconds=90)

    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    assert story.count("begun") == story.count("done") == 100, "each ran once"
    after = story.enqueue(jobs.quick)
    wait_until(lambda: after.status() is JobState.COMPLETED, "the worker goes on")
    assert not worker.says("worker.database_lost")
