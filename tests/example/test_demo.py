"""The demo as a whole, as a process beside this one."""

import re
import signal
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

from django.contrib.auth import authenticate
from django.db import transaction

from django_pgbroker.models import ArchivedJob, Execution, Job
from example_project.documents.comparison import compare
from example_project.documents.ingest import broken_sources, find_sources
from example_project.documents.models import Batch, CatalogueEntry, Document

from .demo_process import MANAGE, Demo, all_gone

RUNS_ON = "Ctrl-C stops everything"

type StartDemo = Callable[..., Demo]


def test_once_ends_well_and_says_so_in_its_last_line_and_so_does_a_second_run(demo: StartDemo, folder: Path) -> None:
    done = demo("--once", str(folder))
    assert done.process.wait(120) == 0, done.lines()
    # nine files and five shipped broken ones, two catalogue entries; six of the files are broken
    assert re.fullmatch(r"demo: 10 completed, 6 dead, 0 lost in \d+\.\d s", done.lines()[-1])
    assert not Job.objects.exists()

    # the standard library, when no folder is named
    again = demo("--once", "--limit", "30")
    assert again.process.wait(120) == 0, again.lines()
    assert re.fullmatch(r"demo: 34 completed, 5 dead, 0 lost in \d+\.\d s", again.lines()[-1])
    assert not Job.objects.exists()
    assert ArchivedJob.objects.count() == 16 + 39


def test_the_comparison_finds_every_falsified_row(demo: StartDemo, folder: Path) -> None:
    assert demo("--once", str(folder)).process.wait(120) == 0
    batch = Batch.objects.get()
    paths = [*find_sources(folder), *broken_sources()]
    whole = compare(batch, paths)
    assert (whole.completed, whole.dead, whole.lost, whole.complaints) == (10, 6, 0, [])

    plain = Document.objects.get(path=str(folder / "plain.py"))
    torn = Document.objects.get(path=str(folder / "torn.py"))
    entry = CatalogueEntry.objects.order_by("pk")[0]
    falsifications: dict[str, Callable[[], object]] = {
        "the plain loop": lambda: Document.objects.filter(pk=plain.pk).update(line_count=2),
        "the document says": lambda: Document.objects.filter(pk=plain.pk).update(analysed_at=None),
        "there is no document": lambda: Document.objects.filter(pk=plain.pk).delete(),
        "nobody asked for": lambda: Document.objects.create(batch=batch, path="/else.py"),
        "cannot read it": lambda: Document.objects.filter(pk=torn.pk).update(analysed_at=batch.started_at),
        "not in the archive": lambda: ArchivedJob.objects.filter(pk=plain.job_id).delete(),
        "is dead, not completed": lambda: Document.objects.filter(pk=plain.pk).update(job_id=torn.job_id),
        "no traceback": lambda: Execution.objects.filter(job_id=torn.job_id).update(traceback=""),
        "has no traceback": lambda: Execution.objects.filter(job_id=torn.job_id).delete(),
        "after 1 attempts": lambda: ArchivedJob.objects.filter(pk=entry.job_id).update(attempt=1),
        "not listed": lambda: CatalogueEntry.objects.filter(pk=entry.pk).update(listed_at=None),
    }
    for words, falsify in falsifications.items():
        with transaction.atomic():
            falsify()
            found = compare(batch, paths)
            transaction.set_rollback(True)
        assert any(words in complaint for complaint in found.complaints), (words, found.complaints)
        if words == "not in the archive":
            assert (found.completed, found.dead, found.lost) == (9, 6, 1)
    assert compare(batch, paths) == whole


def test_the_admin_opens_with_the_printed_password_until_ctrl_c_ends_everything(demo: StartDemo, folder: Path) -> None:
    running = demo(str(folder))
    running.wait_for(RUNS_ON)
    with urllib.request.urlopen(running.address()) as response:
        assert "Log in" in response.read().decode()
    printed = re.search(r"user admin, password (\S+)", running.output.read_text())
    assert printed
    assert authenticate(username="admin", password=printed.group(1)) is not None
    family = running.family()
    assert len(family) >= 3

    assert running.end(signal.SIGINT) == 0

    # nothing is left to wait for: the demo ended after its children
    assert not [process for process in family if process.is_running()]


def test_a_killed_demo_leaves_no_process(demo: StartDemo, folder: Path) -> None:
    running = demo(str(folder))
    running.wait_for(RUNS_ON)
    family = running.family()
    assert len(family) >= 3

    running.end(signal.SIGKILL)

    all_gone(family)


def test_the_demo_ends_when_its_worker_does_and_shows_why(demo: StartDemo, folder: Path) -> None:
    running = demo(str(folder))
    running.wait_for(RUNS_ON)
    worker = next(process for process in running.family() if "pgbroker_worker" in process.cmdline())

    worker.kill()

    assert running.process.wait(30) == 1
    assert "The worker ended by itself with status -9" in running.output.read_text()


def test_a_killed_make_takes_the_demo_with_it(demo: StartDemo, folder: Path, tmp_path: Path) -> None:
    makefile = tmp_path / "Makefile"
    makefile.write_text(f"demo:\n\t@'{sys.executable}' '{MANAGE}' demo '{folder}'\n")
    running = demo(command=("make", "-f", str(makefile), "demo"))
    running.wait_for(RUNS_ON)
    family = running.family()
    assert len(family) >= 4

    running.end(signal.SIGKILL)

    all_gone(family)
