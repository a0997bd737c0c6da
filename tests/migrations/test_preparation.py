"""After migrate the database is ready for work: partitions, the default tenant, and what settings and code declare."""

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from django_pgbroker.domain.errors import ConfigurationError
from tests.migrations.conftest import Database, Project


def test_a_period_of_days_makes_a_partition_for_each_day_ahead(database: Database, settings: Settings) -> None:
    settings.PGBROKER = {"PARTITION_PERIOD": "day", "PARTITION_DAYS_AHEAD": 10}

    database.migrate()

    assert len(database.partitions() - {"pgbroker.execution_default"}) == 11


def test_a_lost_default_tenant_comes_back_and_declared_queues_are_added(database: Database, settings: Settings) -> None:
    database.migrate()
    assert database.query("delete from pgbroker.tenant returning name") == [("default",)]
    settings.PGBROKER = {"QUEUES": {"default": {}, "critical": {"ageing_seconds": 5}}}

    database.migrate()

    assert database.query("select name from pgbroker.tenant") == [("default",)]
    queues = dict(database.query("select name, ageing_seconds from pgbroker.queue"))
    assert (queues["critical"], queues["default"]) == (5, 60)


def test_the_default_queue_exists_before_its_first_job(database: Database) -> None:
    database.migrate()

    assert ("default",) in database.query("select name from pgbroker.queue")


def test_a_queue_that_was_changed_by_hand_is_left_as_it_is(database: Database, settings: Settings) -> None:
    settings.PGBROKER = {"QUEUES": ["default"]}
    database.migrate()
    database.query("update pgbroker.queue set ageing_seconds = 7, paused_at = now() returning id")

    database.migrate()

    assert database.query("select ageing_seconds, paused_at is null from pgbroker.queue") == [(7, False)]


def test_the_job_types_of_installed_apps_are_added(project: Project, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "jobs.py").write_text(
        "from django_pgbroker import job\n\n\n@job('shop.send_receipt')\ndef send_receipt(order_id):\n    pass\n"
    )
    project.apps = ["django_pgbroker", "shop"]
    project.configure()

    project.run("-m", "django", "migrate")

    assert project.database.query("select name from pgbroker.job_type order by name") == [
        ("pgbroker.change_jobs",),
        ("shop.send_receipt",),
    ]


def test_migrate_succeeds_while_a_long_transaction_reads_the_history(database: Database, settings: Settings) -> None:
    database.migrate()
    settings.PGBROKER = {"PARTITION_DAYS_AHEAD": 40}
    before = database.partitions()

    with database.connect(autocommit=False) as reader:
        reader.execute("select count(*) from pgbroker.execution")
        database.migrate()
        assert database.partitions() == before

    database.migrate()
    assert database.partitions() > before


def test_a_wrong_setting_stops_migrate_and_is_named(database: Database, settings: Settings) -> None:
    settings.PGBROKER = {"PARTITON_PERIOD": "week"}

    with pytest.raises(ConfigurationError, match="PARTITON_PERIOD"):
        database.migrate()
