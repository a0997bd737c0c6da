"""``--reload``: a real project folder whose jobs.py is edited while its worker runs."""

import os
import signal
import textwrap

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import Worker
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs
from tests.scenarios.processes import PROJECT, ManageProcess, database_of_this_run
from tests.worker.handlers import declare

__all__ = ["declare"]

SECONDS = 60

SETTINGS = """
from tests.scenarios.settings import *
from tests.scenarios.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "reloaded"]
"""


class Project:
    """A folder with an app ``reloaded``, and the worker that runs it."""

    def __init__(self, folder):
        self.folder = folder
        self.write("reload_settings.py", SETTINGS)
        self.write("reloaded/__init__.py", "")
        self.write("reloaded/words.py", "WORD = 'first'")
        self.write_jobs("return WORD")
        self.worker = None

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        before = path.stat().st_mtime if path.exists() else 0
        path.write_text(textwrap.dedent(text))
        # the reloader goes by the time of the last change, which two edits must not share
        os.utime(path, (before + 5, before + 5) if before else None)

    def write_jobs(self, body):
        self.write(
            "reloaded/jobs.py",
            f"""
            from django_pgbroker import job
            from reloaded.words import WORD


            @job("reloaded.word")
            def word():
                {body}
            """,
        )

    def start(self, *arguments):
        more = {
            "DJANGO_SETTINGS_MODULE": "reload_settings",
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(PROJECT)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = ("pgbroker_worker", "--concurrency", "2", "--reload", *arguments)
        self.worker = ManageProcess(command, {}, database_of_this_run(), more)
        return self.worker

    def wait_for_worker(self, number):
        """Until so many workers have been started, one after the other."""
        wait_until(
            lambda: self.worker.output.count("worker.started") >= number or not self.worker.lives, "it starts", SECONDS
        )
        assert self.worker.lives, self.worker.output


@pytest.fixture
def project(tmp_path, story):
    project = Project(tmp_path)
    yield project
    if project.worker:
        project.worker.kill()
        print(project.worker.output)  # noqa: T201 - shown by pytest where a test fails
        wait_until(lambda: project.worker.has_closed_output, "all its processes are gone", SECONDS)


@pytest.fixture
def run_word(declare):
    """Enqueues the job of the project and returns what its handler says."""

    @declare("reloaded.word")
    def word():
        """The handler is in the folder."""

    def run_word():
        handle = word.enqueue()
        wait_until(lambda: handle.status() is JobState.COMPLETED, "it is done", SECONDS)
        return handle.result()

    return run_word


def test_edited_code_runs_after_a_moment_and_broken_code_is_waited_out(project, run_word):
    worker = project.start()
    project.wait_for_worker(1)
    assert run_word() == "first"

    project.write("reloaded/words.py", "WORD = 'second'")
    project.wait_for_worker(2)
    assert run_word() == "second"
    assert worker.says("words.py has changed.")

    project.write_jobs("return WORD +")
    wait_until(lambda: worker.says("SyntaxError"), "it is told", SECONDS)
    wait_until(lambda: worker.says("the worker goes on with the old one"), "it goes on", SECONDS)
    assert run_word() == "second"

    project.write_jobs("return WORD + ' again'")
    project.wait_for_worker(3)
    assert run_word() == "second again"

    worker.send(signal.SIGTERM)
    assert worker.wait(SECONDS) == 0
    assert list(Worker.objects.order_by("id").values_list("stop_reason", flat=True)) == ["stopped"] * 3


def test_what_runs_may_finish_before_the_restart(project, story):
    worker = project.start()
    project.wait_for_worker(1)
    handle = story.enqueue(jobs.gated, gate="open")
    wait_until(lambda: story.count("begun"), "it runs")
    project.write("reloaded/words.py", "WORD = 'second'")
    wait_until(lambda: worker.says("worker.draining"), "it drains", SECONDS)
    story.open("open")
    project.wait_for_worker(2)
    assert handle.status() is JobState.COMPLETED
    assert story.count("begun") == 1


def test_it_watches_one_worker_only(project):
    worker = project.start("--processes", "2")
    assert worker.wait(SECONDS) == 1
    assert "leave out --processes" in worker.output
