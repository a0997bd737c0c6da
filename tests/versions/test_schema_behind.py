"""A release whose migrations have not been applied yet: its worker does not begin."""

import shutil

from tests.versions.release import ROOT, Shop, migration_names

LATER = """
from django.db import migrations

class Migration(migrations.Migration):
    dependencies = [("django_pgbroker", {last!r})]
    operations = [migrations.RunSQL("alter table pgbroker.job add column colour text")]
"""


def test_tomorrows_worker_on_todays_schema_ends_and_says_which_migrations_are_missing(owned_database, tmp_path):
    tomorrow = tmp_path / "tomorrow"
    shutil.copytree(ROOT / "django_pgbroker", tomorrow / "django_pgbroker")
    later = LATER.format(last=max(migration_names(ROOT)))
    (tomorrow / "django_pgbroker/migrations/0999_colour.py").write_text(later)
    shops = {age: Shop(tmp_path / f"shop {age}", package, owned_database) for age, package in
             {"today": ROOT, "tomorrow": tomorrow}.items()}  # fmt: skip
    shops["today"].run("migrate", "--verbosity", "0")

    worker = shops["tomorrow"].start("pgbroker_worker")
    try:
        assert worker.wait(30) == 1
    finally:
        worker.kill()

    said = shops["tomorrow"].read("pgbroker_worker")
    assert "CommandError: the database 'default' cannot be used" in said
    assert "it lacks 0999_colour of django_pgbroker. Run manage.py migrate" in said
    assert "worker.started" not in said

    shops["tomorrow"].run("migrate", "--verbosity", "0")
    shops["tomorrow"].run("pgbroker_worker", "--until-empty")
    shops["today"].run("pgbroker_worker", "--until-empty")
