"""A server that is there and refuses to write, as a standby does after a failover."""

import logging
from contextlib import contextmanager

from django_pgbroker.domain.states import JobState
from tests.maintenance.waiting import wait_until

TURNS = (
    "select pid from pg_stat_activity "
    "where datname = current_database() and application_name like 'pgbroker worker%%' and pid <> pg_backend_pid()"
)


@contextmanager
def altered(rows, setting):
    """New connections to the test database are different; those that are there stay as they are."""
    name = rows.one("select current_database()")
    rows.run(f'alter database "{name}" set {setting}')
    try:
        yield
    finally:
        rows.run(f'alter database "{name}" reset {setting.split()[0]}')


def cut(rows):
    rows.run(f"select pg_terminate_backend(pid, 5000) from ({TURNS}) as victim")


def events(caplog):
    wanted = {"worker.database_lost", "worker.database_back"}
    return [record.event for record in caplog.records if getattr(record, "event", None) in wanted]


def test_a_worker_outlives_a_server_that_is_read_only_for_a_while(declare, start, rows, caplog):
    noop = declare("tests.noop")(lambda: 1)
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        worker = start(concurrency=1)
        first = noop.enqueue()
        wait_until(lambda: first.status() is JobState.COMPLETED, "it works")
        with altered(rows, "default_transaction_read_only = on"):
            cut(rows)
            second = noop.enqueue()
            backends = set()
            wait_until(lambda: backends.add(rows.one(TURNS)) or len(backends - {None}) >= 3, "it tries again and again")
        wait_until(lambda: second.status() is JobState.COMPLETED or not worker.lives, "it works again")
        assert worker.drain() == 0
    assert second.status() is JobState.COMPLETED
    assert events(caplog) == ["worker.database_lost", "worker.database_back"]


def test_a_drain_while_the_database_is_away_ends_when_its_time_is_over_and_leaves_the_jobs_to_their_leases(
    declare, start, gate, rows, settings
):
    settings.PGBROKER = {"POLL_MAX_SECONDS": 0.1, "DRAIN_SECONDS": 0.5}

    @declare()
    def stuck():
        gate.wait()

    handle = stuck.enqueue()
    worker = start(concurrency=1)
    gate.wait_until_arrived()
    with altered(rows, "default_transaction_read_only = on"):
        cut(rows)
        assert worker.drain() == 1
    assert handle.status() is JobState.RUNNING
    assert rows.one("select lease_expires_at is not null from pgbroker.job")
