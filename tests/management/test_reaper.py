"""``pgbroker_reaper`` as a person starts it."""

import signal

import pytest
from django.core.management import CommandError, call_command

from django_pgbroker.domain.states import JobState
from tests.maintenance.waiting import wait_until
from tests.management.processes import manage


def test_once_runs_each_duty_and_says_what_it_did(rows, capsys):
    job = rows.job(rows.queue(), expires_in=-1)
    call_command("pgbroker_reaper", "--once")
    lines = capsys.readouterr().out.splitlines()
    assert "expirer: 1 moved" in lines
    assert [line.partition(":")[0] for line in lines] == [
        "reclaimer", "expirer", "overdue", "partitioner", "presence", "retention", "sampler", "stat_pruner",
        "unknown_types",
    ]  # fmt: skip
    assert rows.state_of(job) is JobState.EXPIRED


def test_once_says_which_duty_another_process_is_in(rows, rival, capsys):
    from django_pgbroker.store.duty_lock import try_duty_lock

    with rival.transaction():
        try_duty_lock(rival, "expirer")
        call_command("pgbroker_reaper", "--once")
    assert "expirer: another process is in it" in capsys.readouterr().out


def test_an_unknown_database_is_refused_with_the_names_that_exist(broker_database):
    with pytest.raises(CommandError, match=r"'elsewhere' is no alias in DATABASES. Known: 'default'"):
        call_command("pgbroker_reaper", "--once", "--database", "elsewhere")


@pytest.mark.parametrize("command", ["pgbroker_worker", "pgbroker_reaper", "pgbroker_scheduler"])
def test_before_migrate_every_process_ends_at_its_start_and_names_the_command(command, unmigrated_alias, capsys):
    with pytest.raises(CommandError, match=f"Run manage.py migrate --database {unmigrated_alias} first"):
        call_command(command, "--database", unmigrated_alias)
    assert capsys.readouterr().out == "", "no banner"


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["pgbroker_worker", "pgbroker_reaper", "pgbroker_scheduler"])
def test_every_process_words_a_database_that_cannot_hold_jobs_alike(command, sqlite_alias):
    with pytest.raises(CommandError, match=f"'{sqlite_alias}' is sqlite; jobs are stored in PostgreSQL only"):
        call_command(command, "--database", sqlite_alias)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_works_until_a_signal_stops_it_with_status_zero(rows, number):
    job = rows.job(rows.queue(), JobState.RUNNING, lease_in=-1, attempt=3, max_attempts=3)
    with manage("pgbroker_reaper") as process:
        wait_until(lambda: rows.state_of(job) is JobState.DEAD, "the lapsed job is recovered", seconds=30)
        process.send_signal(number)
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
    assert output.splitlines()[0].startswith("pgbroker reaper runs on database 'default': reclaimer, expirer,")
    assert output.splitlines()[-1] == "pgbroker reaper stopped."


def test_a_killed_reaper_leaves_its_duties_to_the_next_one(rows):
    with manage("pgbroker_reaper") as process:
        connected = "select 1 from pg_stat_activity where application_name = 'pgbroker maintenance reaper'"
        wait_until(lambda: rows.one(connected), "it is connected", seconds=30)
        process.kill()
        process.communicate(timeout=20)
    job = rows.job(rows.queue(), expires_in=-1)
    with manage("pgbroker_reaper") as process:
        wait_until(lambda: rows.state_of(job) is JobState.EXPIRED, "the next one expires the job", seconds=30)
        process.terminate()
        process.communicate(timeout=20)
