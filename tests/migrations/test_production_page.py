"""What docs/how-to/run-in-production.md says of rights, connections and the list form, tried."""

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex

import pytest
from psycopg import sql

from tests.migrations.conftest import ROOT, Database, Project, finish

PAGE = (ROOT / "docs/how-to/run-in-production.md").read_text()
[GRANTS] = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
JOBS = """
from django_pgbroker import job

@job("shop.add")
def add(a, b):
    return a + b
"""
ENQUEUE = "import django; django.setup(); from shop.jobs import add; print(add.using(queue='new').enqueue(1, 2).id)"
RESULT = "import django; django.setup(); from django_pgbroker import JobHandle; print(JobHandle({}).result())"
SESSIONS = "select application_name from pg_stat_activity where datname = current_database() and application_name ~ "
SESSIONS += "'^pgbroker '"


@pytest.fixture
def shop(project: Project, tmp_path: Path) -> Project:
    """A migrated project with one job type."""
    project.apps = ["django_pgbroker", "shop"]
    project.configure()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/__init__.py").touch()
    (tmp_path / "shop/jobs.py").write_text(JOBS)
    project.run("-m", "django", "migrate", "--verbosity", "0")
    return project


@pytest.fixture
def role(database: Database) -> Iterator[str]:
    """A login role that owns nothing."""
    name = f"shop_{token_hex(4)}"
    with database.connect() as connection:
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(name)))


def test_a_role_with_the_grants_of_the_page_enqueues_and_works_without_the_duties(shop: Project, role: str) -> None:
    with shop.database.connect() as connection:
        connection.execute(GRANTS.replace(" to shop", f" to {role}"))
    shop.configure(default=shop.database.settings(USER=role))

    job_id = shop.run("-c", ENQUEUE).strip()
    shop.run("-m", "django", "pgbroker_worker", "--queues", "new", "--until-empty", "--no-maintenance")

    assert shop.run("-c", RESULT.format(job_id)).strip() == "3"
    # what the grants leave to the owner, as the page says
    with (shop.folder / "project_settings.py").open("a") as settings:
        settings.write("PGBROKER = {'PARTITION_DAYS_AHEAD': 60}\n")
    reaper = shop.start("-m", "django", "pgbroker_reaper", "--once")
    output, _ = reaper.communicate(timeout=60)
    assert "permission denied for schema pgbroker" in output


@pytest.mark.parametrize(("options", "count"), [((), 4), (("--no-maintenance",), 3)])
def test_an_idle_worker_holds_as_many_connections_as_the_page_says_and_ends_at_sigterm_with_status_zero(
    shop: Project, options: tuple[str, ...], count: int
) -> None:
    assert "four connections of its own" in PAGE
    assert "three with `--no-maintenance`" in PAGE
    worker = shop.start("-m", "django", "pgbroker_worker", "--concurrency", "2", *options)
    deadline = time.monotonic() + 30
    while len(sessions := shop.database.query(SESSIONS)) != count:
        assert time.monotonic() < deadline, sessions
        assert worker.poll() is None
        time.sleep(0.05)

    worker.send_signal(signal.SIGTERM)

    assert "stopped." in finish(worker)
