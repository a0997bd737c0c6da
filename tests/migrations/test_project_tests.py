"""A project's own tests, as docs/how-to/testing.md shows them, run by Django's test runner on a database of its own."""

import re
from pathlib import Path

import pytest

from tests.migrations.conftest import ROOT, Project

PAGE = (ROOT / "docs/how-to/testing.md").read_text()
JOBS = """
from django_pgbroker import job

@job("shop.add")
def add(a, b):
    return a + b
"""


@pytest.fixture
def shop(project: Project, tmp_path: Path) -> Project:
    """A project with one app, whose tests are those of the page."""
    project.apps = ["django_pgbroker", "shop"]
    project.configure()
    package = tmp_path / "shop/tests"
    package.mkdir(parents=True)
    (tmp_path / "shop/__init__.py").touch()
    (package / "__init__.py").touch()
    (tmp_path / "shop/jobs.py").write_text(JOBS)
    for path, code in re.findall(r"```python\n# (shop/\S+)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / path).write_text(code)
    return project


def test_the_tests_of_the_page_pass(shop: Project) -> None:
    shown = shop.run("-m", "django", "test", "--noinput")

    assert "Ran 5 tests" in shown
    assert "OK" in shown


def test_without_the_statement_of_the_page_a_job_is_left_to_the_next_test(shop: Project, tmp_path: Path) -> None:
    test = tmp_path / "shop/tests/test_worker.py"
    test.write_text(test.read_text().replace("cursor.execute(EMPTY)", "pass"))
    again = test.read_text().replace("class WorkerTest", "class SecondTest").replace("test_a_worker", "no_test")
    (tmp_path / "shop/tests/test_worker_again.py").write_text(again)

    process = shop.start("-m", "django", "test", "--noinput")
    shown, _ = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "FAIL: test_nothing_is_left_of_another_test" in shown
