"""The server goes away and comes back under two workers (B051). It is a server of their own."""

import signal
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.maintenance.waiting import wait_until
from tests.scenarios.processes import ManageProcess
from tests.shell.clones import Clone

#: Enqueues one job and tells its id.
ENQUEUE = (
    "from django_pgbroker import enqueue; "
    "print('job', enqueue('documents.analyse_document', {'document_id': 1}, max_attempts=1).id)"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    clone = Clone(tmp_path_factory.mktemp("outage") / "server")
    clone.attach()
    yield clone
    clone.remove()


def database_of(server):
    return {
        "ENGINE": "django.db.backends.postgresql", "NAME": "pgbroker", "USER": "postgres",
        "HOST": str(server.place.sockets), "PORT": "5432",
    }  # fmt: skip


def ask(server, text):
    with psycopg.connect(
        host=str(server.place.sockets), user="postgres", dbname="pgbroker", autocommit=True
    ) as connection:
        cursor = connection.execute(text)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def test_workers_outlive_an_outage_answer_signals_in_it_and_then_take_the_next_job(server):
    database = database_of(server)
    migrate = ManageProcess(("migrate", "--verbosity", "0"), {}, database)
    assert migrate.wait(60) == 0, migrate.output
    leaver, stayer = (ManageProcess(("pgbroker_worker", "--concurrency", "2"), {}, database) for _ in range(2))
    try:
        for worker in (leaver, stayer):
            worker.wait_until_ready()
        server.command("stop")
        for event in ("worker.database_lost", "lease.renewal_failed", "listener.lost", "maintenance.database_lost"):
            for worker in (leaver, stayer):
                wait_until(lambda worker=worker, event=event: worker.says(event), event)

        began = time.monotonic()
        leaver.send(signal.SIGTERM)
        assert leaver.wait(5) == 0
        assert time.monotonic() - began < 5

        told = [len(worker.lines) for worker in (leaver, stayer)]
        server.attach()
        new = ManageProcess(("shell", "-c", ENQUEUE), {}, database)
        assert new.wait(60) == 0, new.output
        wait_until(lambda: ask(server, "select count(*) from pgbroker.archived_job") == 1, "the next job ran")
        assert stayer.lives
        wait_until(lambda: stayer.says("worker.database_back"), "it says that the database is back")
        stayer.send(signal.SIGTERM)
        assert stayer.wait(10) == 0
    finally:
        for worker in (leaver, stayer):
            worker.kill()
    assert max(told) < 20, leaver.output + stayer.output
    for worker in (leaver, stayer):
        assert worker.output.count("worker.database_lost") == 1


def test_a_database_that_is_not_migrated_is_an_error_that_says_so(server):
    ask(server, "create database unmigrated")
    database = {**database_of(server), "NAME": "unmigrated"}
    worker = ManageProcess(("pgbroker_worker",), {}, database)
    try:
        assert worker.wait(30) == 1
    finally:
        worker.kill()
    assert "it has no tables of the broker. Run manage.py migrate --database default first" in worker.output
    assert "Ctrl-C" not in worker.output, "the banner of a worker that runs"
    assert "Traceback" not in worker.output


def test_a_worker_that_starts_before_its_server_waits_for_it(server):
    server.command("stop")
    worker = ManageProcess(("pgbroker_worker", "--no-maintenance"), {}, database_of(server))
    try:
        wait_until(lambda: worker.says("worker.database_lost"), "it waits", seconds=30)
        server.attach()
        worker.wait_until_ready()
        worker.send(signal.SIGTERM)
        assert worker.wait(10) == 0
    finally:
        worker.kill()
