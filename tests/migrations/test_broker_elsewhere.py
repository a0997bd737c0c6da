"""A project whose broker is not on the alias ``default``: everything follows ``PGBROKER["DATABASE"]``."""

from pathlib import Path

import pytest

from tests.migrations.conftest import SQLITE, Database, Project, fresh_database

MORE_SETTINGS = """
PGBROKER = {"DATABASE": "broker", "POLL_MAX_SECONDS": 0.1}
ROOT_URLCONF = "project_urls"
ALLOWED_HOSTS = ["testserver"]
STATIC_URL = "static/"
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]
"""

URLS = """
from django.contrib import admin
from django.urls import path

urlpatterns = [path("admin/", admin.site.urls)]
"""

JOBS = """
from django_pgbroker import job

@job("shop.add")
def add(a, b):
    return a + b

@job("shop.fail", max_attempts=1)
def fail():
    raise ValueError("no such order")
"""

USE_IT = """
import django
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django_pgbroker import JobHandle
from django_pgbroker.models import Job, Worker
from django_pgbroker.operations.doctor.examination import examine
from django_pgbroker.operations.overview import read_overview
from django_pgbroker.operations.retention import plan_retention
from shop.jobs import add, fail

call_command("migrate", verbosity=0)
call_command("migrate", database="broker", verbosity=0)
handle = add.enqueue(a=1, b=2)
dead = fail.enqueue()
call_command("pgbroker_worker", "--until-empty", verbosity=0)
waiting = add.using(queue="later").enqueue(a=3, b=4)

assert JobHandle(handle.id).result() == 3, "a stored id"
assert JobHandle(handle.id) == handle
assert {queue.name for queue in read_overview().queues} == {"default", "later"}
assert plan_retention().is_empty
assert examine().findings
assert Job.objects.get().pk == waiting.id
call_command("pgbroker_status")

browser = Client()
browser.force_login(User.objects.create_superuser("root", password="x"))
def read(path):
    response = browser.get(f"/admin/django_pgbroker/{path}")
    assert response.status_code == 200, (path, response.status_code)
    return response.content.decode()

worker = Worker.objects.get()
pages = {
    "job/": "shop.<wbr>add", f"job/?q={waiting.id}": "shop.<wbr>add", f"job/{waiting.id}/change/": "later",
    f"archivedjob/{handle.id}/change/": "Result", "archivedjob/": "shop.<wbr>fail",
    "deadletter/": "no such order", f"deadletter/{dead.id}/change/": "Traceback of attempt 1",
    "execution/": "no such order", "queue/": "later", "worker/": worker.name,
    f"worker/{worker.pk}/change/": "shop.fail",
}
for path, shown in pages.items():
    assert shown in read(path), (path, shown)
assert "later" in read("job/"), "the choices of the filter"
followed = browser.get(f"/admin/django_pgbroker/job/{handle.id}/change/", follow=True)
assert followed.status_code == 200 and "Result" in followed.content.decode(), "a finished job leads to the archive"
print("all of it was used")
"""


def build(project: Project, default: dict[str, object], folder: Path) -> None:
    project.apps = [
        "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
        "django.contrib.messages", "admin_extra_buttons", "django_pgbroker", "shop",
    ]  # fmt: skip
    project.configure(default=default, broker=project.database.settings())
    with (folder / "project_settings.py").open("a") as file:
        file.write(MORE_SETTINGS)
    (folder / "project_urls.py").write_text(URLS)
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").touch()
    (folder / "shop" / "jobs.py").write_text(JOBS)


def test_all_of_it_finds_the_broker_beside_a_default_database_that_is_sqlite(project: Project, tmp_path: Path) -> None:
    build(project, {**SQLITE, "NAME": str(tmp_path / "default.sqlite3")}, tmp_path)

    shown = project.run("-c", USE_IT)

    assert "all of it was used" in shown
    assert "later" in shown, "the status command"


@pytest.fixture
def second(newest_params: dict[str, object]):
    with fresh_database(newest_params) as made:
        yield made


def test_all_of_it_finds_the_broker_beside_a_default_database_with_empty_tables_of_its_own(
    project: Project, second: Database, tmp_path: Path
) -> None:
    build(project, second.settings(), tmp_path)

    assert "all of it was used" in project.run("-c", USE_IT)
    assert second.query("select count(*) from pgbroker.job") == [(0,)]
