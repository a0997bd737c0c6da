"""Exit statuses of the commands as a shell sees them, and output whose reader has gone."""

import json
import os
import pty
import subprocess
import sys

import pytest

from django_pgbroker.models import AuditEntry, Job
from tests import factories
from tests.management.commands import make_user
from tests.management.processes import PROJECT, database_url


@pytest.fixture(autouse=True)
def empty(broker_database: None) -> None:
    """Every test counts from nothing."""


def manage(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env={**os.environ, "DATABASE_URL": options.pop("url", None) or database_url()},
        check=False,
        text=True,
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
    )


def test_every_status_means_what_the_help_says():
    job, other = factories.JobFactory(), factories.JobFactory()
    make_user("ada")
    cases = {
        2: ["cancel", str(job.pk), "--no-such-option"],
        1: ["cancel", str(job.pk), "--as", "nobody"],
        4: ["cancel", str(job.pk), "--as", "ada"],
        5: ["cancel", "999999"],
        3: ["cancel", str(job.pk), "999999", "--yes"],
        0: ["cancel", str(other.pk), "--json"],
    }
    for status, words in cases.items():
        ran = manage("pgbroker_jobs", *words)
        assert ran.returncode == status, (words, ran.stderr)
        assert "Traceback" not in ran.stderr
        if status:
            assert ran.stderr.strip()
    assert json.loads(ran.stdout)["ids"] == [other.pk]
    assert not Job.objects.exists()
    assert AuditEntry.objects.count() == 2


def test_without_a_subcommand_the_usage_is_told():
    ran = manage("pgbroker_jobs")

    assert ran.returncode == 2
    assert "SUBCOMMAND" in ran.stderr


def test_a_database_that_is_away_is_an_error_in_words():
    for command in (["pgbroker_jobs", "list"], ["pgbroker_audit"], ["pgbroker_redrive", "7"]):
        ran = manage(*command, url="postgres://nobody@127.0.0.1:1/nothing")
        assert ran.returncode == 1
        assert "Traceback" not in ran.stderr
        assert "127.0.0.1" in ran.stderr


def test_a_reader_that_has_seen_enough_ends_the_command_quietly():
    """The listing is longer than the buffer of a pipe."""
    for _ in range(60):
        factories.JobFactory(job_type=factories.JobTypeFactory(name="x" * 200))
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "pgbroker_jobs", "list", "--json"],
        cwd=PROJECT, env={**os.environ, "DATABASE_URL": database_url()},
        stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(writing)
    os.close(reading)
    _, error = process.communicate(timeout=60)

    assert process.returncode == 141
    assert error == ""


def test_a_person_at_a_real_terminal_is_asked_and_says_no():
    factories.JobFactory(), factories.JobFactory()
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "pgbroker_jobs", "cancel", "--queue", "default"],
        cwd=PROJECT, env={**os.environ, "DATABASE_URL": database_url()},
        stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.write(master, b"n\n")
    output, error = process.communicate(timeout=60)
    os.close(slave)
    os.close(master)

    assert process.returncode == 4
    assert output == ""
    assert "2 jobs would be cancelled" in error
    assert Job.objects.count() == 2
