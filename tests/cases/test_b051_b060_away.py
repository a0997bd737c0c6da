"""B051 and B060 for as long as they were reported: a minute without a server, a minute without a listener."""

import signal
import time

import pytest

from tests.maintenance.waiting import wait_until
from tests.scenarios.processes import ManageProcess, database_of_this_run
from tests.scenarios.test_cut_connections import backend, cpu_seconds, cut
from tests.scenarios.test_outage import ENQUEUE, ask, database_of, server

pytestmark = pytest.mark.drill

__all__ = ["server"]

#: As they are by default.
CALM = {
    "LEASE_SECONDS": 60, "HEARTBEAT_SECONDS": 12, "RECLAIM_INTERVAL_SECONDS": 5, "POLL_MAX_SECONDS": 5,
    "DRAIN_SECONDS": 30,
}  # fmt: skip

MINUTE = 60


def pass_a_minute(look=lambda: None):
    """The time without is the case itself; ``look`` is called many times a second."""
    until = time.monotonic() + MINUTE
    wait_until(lambda: look() or time.monotonic() > until, "a minute", MINUTE + 5)


def test_b051_a_minute_without_a_server_costs_little_and_says_little_and_work_goes_on_within_ten_seconds(server):
    database = database_of(server)
    migrate = ManageProcess(("migrate", "--verbosity", "0"), {}, database)
    assert migrate.wait(60) == 0, migrate.output
    leaver, stayer = (ManageProcess(("pgbroker_worker", "--concurrency", "2"), CALM, database) for _ in range(2))
    try:
        for worker in (leaver, stayer):
            worker.wait_until_ready()
        server.command("stop")
        spent, said = cpu_seconds(stayer.pid), len(stayer.lines)
        pass_a_minute()
        assert stayer.lives
        assert leaver.lives
        assert cpu_seconds(stayer.pid) - spent < 0.05 * MINUTE
        assert len(stayer.lines) - said < 30, stayer.output
        leaver.send(signal.SIGTERM)
        assert leaver.wait(5) == 0

        server.attach()
        new = ManageProcess(("shell", "-c", ENQUEUE), {}, database)
        assert new.wait(60) == 0, new.output
        wait_until(lambda: ask(server, "select count(*) from pgbroker.archived_job") == 1, "the next job ran", 10)
    finally:
        for worker in (leaver, stayer):
            worker.kill()
            print(f"--- worker {worker.pid}\n{worker.output}")  # noqa: T201 - shown by pytest where a test fails


def test_b060_a_minute_without_a_listener_is_a_minute_of_calm_polling(story, rows):
    """Fewer than sixty statements in all; a turn is one, since its statements travel together."""
    latest = "select pid, query_start from pg_stat_activity where usename = 'pgbroker_minute'"
    statements = set()
    rows.run("create role pgbroker_minute login in role current_user")
    database = {**database_of_this_run(), "USER": "pgbroker_minute"}
    worker = ManageProcess(("pgbroker_worker", "--concurrency", "1", "--no-maintenance"), CALM, database)
    try:
        worker.wait_until_ready()
        wait_until(lambda: backend(rows, "heartbeat"), "all its connections are open")
        rows.run("alter role pgbroker_minute connection limit 0")
        cut(rows, "listener")
        wait_until(lambda: worker.says("listener.lost"), "it cannot listen")
        spent = cpu_seconds(worker.pid)
        pass_a_minute(lambda: statements.update(rows.gateway.connection.execute(latest).fetchall()))
        assert cpu_seconds(worker.pid) - spent < 0.05 * MINUTE
        assert 5 < len(statements) < 60
        assert worker.output.count("listener.lost") == 1
        rows.run("alter role pgbroker_minute connection limit -1")
        wait_until(lambda: backend(rows, "listener"), "it listens again", seconds=40)
    finally:
        worker.kill()
        rows.run("drop role pgbroker_minute")
