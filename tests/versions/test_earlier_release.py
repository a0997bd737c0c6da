"""Yesterday's release on today's schema, beside today's: what a rolling deployment is.

Without a release tag before this commit there is nothing to compare with. EARLIER_RELEASE names another commit.
"""

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drills.crew import Crew
from tests.drills.history import find_faults
from tests.maintenance.waiting import wait_until
from tests.versions.release import ROOT, VARIABLE, Shop, build_release, find_earlier_release, migration_names


@pytest.fixture(scope="module")
def earlier_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reference = find_earlier_release()
    if reference is None:
        pytest.skip(f"no earlier release: no tag v* before this commit; {VARIABLE} may name a commit instead")
    return build_release(reference, tmp_path_factory.mktemp("release"))


@pytest.fixture
def shops(earlier_package: Path, owned_database: dict[str, Any], tmp_path: Path) -> dict[str, Shop]:
    """Two projects on one database: one of the earlier release, one of today."""
    packages = {"earlier": earlier_package, "today": ROOT}
    return {age: Shop(tmp_path / age, package, owned_database) for age, package in packages.items()}


@pytest.fixture
def start_worker() -> Iterator[Callable[[Shop], subprocess.Popen[str]]]:
    """Starts workers; what is left of them is killed at the end."""
    started: list[subprocess.Popen[str]] = []
    shops_of_workers: list[Shop] = []

    def start(shop: Shop) -> subprocess.Popen[str]:
        started.append(shop.start("pgbroker_worker", "--concurrency", "2"))
        number = shops_of_workers.count(shop) + 1
        shops_of_workers.append(shop)
        wait_until(lambda: shop.read("pgbroker_worker").count("worker.started") >= number, "it is ready", 30)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(10)


def test_workers_and_producers_of_both_releases_share_todays_schema(shops, owned_database, start_worker):
    shops["today"].run("migrate", "--verbosity", "0")
    crew = Crew(owned_database)
    try:
        for worker_of, others in (("earlier", "today"), ("today", "earlier")):
            worker = start_worker(shops[worker_of])
            crew.job_ids += shops[others].produce(60)
            wait_until(lambda: not crew.one("select count(*) from pgbroker.job"), "its worker has done them", 60)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(30) == 0

        both = [start_worker(shop) for shop in shops.values()]
        doomed = start_worker(shops["earlier"])
        for shop in shops.values():
            crew.job_ids += shop.produce(100)
        doomed.kill()
        wait_until(lambda: not crew.one("select count(*) from pgbroker.job"), "all is done", 60)
        for worker in both:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(30) == 0
        with crew.connect() as connection:
            assert find_faults(connection, crew.job_ids) == []
        assert crew.one("select count(*) from pgbroker.archived_job where state = 10") == 320
        for shop in shops.values():
            assert "database_lost" not in shop.read("pgbroker_worker")
    finally:
        crew.end()


def test_todays_worker_on_the_earlier_schema_says_that_migrations_are_missing(shops, earlier_package):
    if migration_names(earlier_package) == migration_names(ROOT):
        pytest.skip("the earlier release has the schema of today")
    shops["earlier"].run("migrate", "--verbosity", "0")

    worker = shops["today"].start("pgbroker_worker")
    try:
        assert worker.wait(30) == 1
    finally:
        worker.kill()
    said = shops["today"].read("pgbroker_worker")
    assert "CommandError" in said
    assert "migrate" in said
    assert "Traceback" not in said
