"""Connections of a worker that are cut while it works (B043, B046, B050, B060)."""

import os
import signal
import time
from pathlib import Path

from django.db import connection

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import Execution
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs
from tests.scenarios.processes import QUICK, ManageProcess, database_of_this_run

ROLES = ["worker", "heartbeat", "listener", "maintenance"]


def backend(rows, role):
    return rows.one(
        "select pid from pg_stat_activity where datname = current_database() and application_name like %s",
        f"pgbroker {role}%",
    )


def cut(rows, role):
    wait_until(lambda: backend(rows, role), f"the connection for {role} is there")
    assert rows.one("select pg_terminate_backend(%s::int, 5000)", backend(rows, role))


def test_each_of_its_connections_is_cut_in_turn_and_nothing_is_lost_or_done_twice(start, story, rows):
    worker = start("--concurrency", "2", settings={"POLL_MAX_SECONDS": 30})
    long = story.enqueue(jobs.gated, gate="open")
    wait_until(lambda: story.count("begun"), "a long job runs")
    for role in ROLES:
        cut(rows, role)
        handle = story.enqueue(jobs.quick)
        wait_until(lambda handle=handle: handle.status() is JobState.COMPLETED, f"a job runs after {role} was cut")
    for role in ROLES:
        wait_until(lambda role=role: backend(rows, role), f"the connection for {role} is back")
    rows.run("select pg_notify('pgbroker_wake', 'default')")
    last = story.enqueue(jobs.quick)
    wait_until(lambda: last.status() is JobState.COMPLETED, "it hears of new jobs", seconds=5)
    story.open("open")
    wait_until(lambda: long.status() is JobState.COMPLETED, "the long job is done")

    assert set(Execution.objects.values_list("outcome", "attempt")) == {(Outcome.COMPLETED, 1)}
    assert rows.one("select count(distinct process_id) from effect") == 1
    assert rows.one("select min(process_id) from effect") == worker.pid
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert not worker.says("Traceback")


def test_all_connections_are_cut_at_once_and_the_idle_worker_takes_the_next_job(start, story, rows):
    worker = start("--concurrency", "1")
    first = story.enqueue(jobs.quick)
    wait_until(lambda: first.status() is JobState.COMPLETED, "it works")
    for role in ROLES:
        wait_until(lambda role=role: backend(rows, role), f"the connection for {role} is there")
    rows.run(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> all (%s)",
        [rows.one("select pg_backend_pid()"), connection.connection.info.backend_pid],
    )
    second = story.enqueue(jobs.quick)
    wait_until(lambda: second.status() is JobState.COMPLETED, "it works again")
    assert set(Execution.objects.values_list("outcome", "attempt")) == {(Outcome.COMPLETED, 1)}
    assert worker.lives
    assert not worker.says("Traceback")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_where_nobody_can_listen_polling_goes_on_without_a_busy_loop_until_it_can_again(story, rows):
    rows.run("create role pgbroker_scenario login in role current_user")
    worker = ManageProcess(
        ("pgbroker_worker", "--concurrency", "1", "--no-maintenance"),
        {**QUICK, "HEARTBEAT_SECONDS": 1, "POLL_MAX_SECONDS": 0.5},
        {**database_of_this_run(), "USER": "pgbroker_scenario"},
    )
    try:
        worker.wait_until_ready()
        first = story.enqueue(jobs.quick)
        wait_until(lambda: first.status() is JobState.COMPLETED, "all its connections are open")
        rows.run("alter role pgbroker_scenario connection limit 0")
        cut(rows, "listener")
        wait_until(lambda: worker.says("listener.lost"), "it cannot listen")

        began, spent = time.monotonic(), cpu_seconds(worker.pid)
        for _ in range(6):
            handle = story.enqueue(jobs.quick)
            wait_until(lambda handle=handle: handle.status() is JobState.COMPLETED, "it polls")
        assert cpu_seconds(worker.pid) - spent < 0.5 * (time.monotonic() - began) + 0.1
        assert backend(rows, "listener") is None
        assert worker.output.count("listener.lost") == 1

        rows.run("alter role pgbroker_scenario connection limit -1")
        wait_until(lambda: backend(rows, "listener"), "it listens again", seconds=20)
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    finally:
        worker.kill()
        rows.run("drop role pgbroker_scenario")
