"""``pgbroker_worker`` as a person starts it; how it stops is told by tests/scenarios."""

import re
import signal
from secrets import token_hex

import psycopg
import pytest
from django.core.management import CommandError, call_command

from django_pgbroker import enqueue, job
from django_pgbroker.domain.states import JobState
from tests.maintenance.waiting import wait_until
from tests.management.processes import manage
from tests.scenarios.processes import ManageProcess, database_of_this_run


@job("tests.management.noop")
def noop() -> str:
    return "done"


def run(*arguments):
    call_command("pgbroker_worker", "--until-empty", *arguments)


def test_until_empty_runs_what_is_there_and_says_what_it_is(broker_database, capsys):
    handles = [enqueue("tests.management.noop") for _ in range(5)]
    run("--queues", "default,mail:5", "--concurrency", "3")
    assert [handle.result() for handle in handles] == ["done"] * 5
    first, *_, last = capsys.readouterr().out.splitlines()
    assert ": 3 slots on default (weight 1), mail (weight 5). At most 8 connections; the server allows " in first
    assert first.endswith(" in use. Ctrl-C or SIGTERM drains.")
    assert last.endswith(" stopped.")


def test_a_short_run_leaves_figures_of_all_queues_as_they_are_after_it(rows):
    for number in range(12):
        rows.queue(f"other{number:02}")
    enqueue("tests.management.noop")
    # taken a moment ago, while the job ran: too young for the duty to look again
    rows.run("update pgbroker.queue set sampled_at = now(), running_count = 1")
    run()
    assert rows.one("select count(*) from pgbroker.queue where running_count is distinct from 0") == 0
    assert rows.one("select count(*) from pgbroker.queue where sampled_at is null") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--queues", ""), "no queue is named; write --queues default"),
        (("--queues", "a:0"), "must be a whole number from 1 to 1,000"),
        (("--queues", "a,a"), "a queue is named twice: a"),
        (("--queues", "no spaces"), "no spaces"),
        (("--concurrency", "0"), "concurrency must be from 1 to 1,000, not 0"),
        (("--concurrency", "many"), "invalid int value: 'many'"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_starts(arguments, message):
    with pytest.raises(CommandError, match=message):
        run(*arguments)


def test_a_queue_that_is_not_declared_is_refused_with_those_that_are(broker_database, settings):
    settings.PGBROKER = {"QUEUES": ["default", "mail"]}
    with pytest.raises(CommandError, match="serve one of: default, mail"):
        run("--queues", "post")


def test_an_unknown_database_is_refused_with_the_names_that_exist(broker_database):
    with pytest.raises(CommandError, match=r"'elsewhere'.*default"):
        run("--database", "elsewhere")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--types", "tests.managment.*"), "no job type fits 'tests.managment.*'"),
        (("--types", ","), "no job type is named"),
        (("--exclude-types", "*"), "no job type is left"),
        (("--queues", "a:2,b", "--strict"), "write a without :2, or leave out --strict"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused_before_anything_starts(rows, arguments, message):
    with pytest.raises(CommandError, match=re.escape(message)):
        run(*arguments)
    assert rows.one("select count(*) from pgbroker.worker") == 0


def test_a_worker_takes_the_types_that_it_is_told_and_leaves_the_others(broker_database):
    handle = enqueue("tests.management.noop")
    run("--exclude-types", "tests.management.*")
    assert handle.status() is JobState.PENDING
    run("--types", "tests.management.*")
    assert handle.status() is JobState.COMPLETED


@pytest.fixture
def narrow_role(rows):
    """A role that may do what the owner may, by five connections."""
    name = f"pgbroker_{token_hex(6)}"
    owner = rows.one("select session_user")
    rows.run(f'create role {name} login connection limit 5 in role "{owner}"')
    yield name
    rows.run(f"drop role {name}")


@pytest.mark.parametrize("processes", [(), ("--processes", "2")])
def test_more_connections_than_the_role_may_ever_have_are_refused_before_anything_is_registered(
    rows, narrow_role, processes
):
    database = {**database_of_this_run(), "USER": narrow_role}
    worker = ManageProcess(("pgbroker_worker", "--concurrency", "2", *processes), {}, database)
    assert worker.wait(30) == 1
    assert f"the role '{narrow_role}' allows 5: lower --processes or --concurrency" in worker.output
    assert rows.one("select count(*) from pgbroker.worker") == 0


def test_fewer_connections_than_may_be_needed_now_are_a_warning(rows, narrow_role):
    database = {**database_of_this_run(), "USER": narrow_role}
    with psycopg.connect(rows.gateway.connection.info.dsn, user=narrow_role):
        worker = ManageProcess(
            ("pgbroker_worker", "--concurrency", "1", "--no-maintenance", "--until-empty"), {}, database
        )
        assert worker.wait(30) == 0, worker.output
    assert "At most 5 connections; the role " in worker.output
    assert f"only 4 of the 5 connections that the role '{narrow_role}' allows are free now" in worker.output


def test_it_does_the_duties_beside_its_jobs_unless_told_otherwise(rows):
    lapsed = rows.job(rows.queue(), JobState.RUNNING, lease_in=-1, attempt=3, max_attempts=3)
    with manage("pgbroker_worker", "--no-maintenance") as process:
        wait_until(lambda: rows.one("select count(*) from pgbroker.worker"), "it is there", seconds=30)
        duties = "select count(*) from pg_stat_activity where datname = current_database() and application_name like %s"
        wait_until(lambda: rows.one(duties, "pgbroker listener%"), "all of it is there")
        assert rows.one(duties, "pgbroker maintenance%") == 0
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
    assert rows.state_of(lapsed) is JobState.RUNNING

    with manage("pgbroker_worker") as process:
        wait_until(lambda: rows.state_of(lapsed) is JobState.DEAD, "the duties are done", seconds=30)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
