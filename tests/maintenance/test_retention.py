"""Old history goes by whole partitions, without holding up those who make new history."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from django_pgbroker.maintenance.duties import DUTIES, REAPER_DUTIES
from django_pgbroker.maintenance.partitioner import Partitioner
from django_pgbroker.maintenance.retention import Retention
from django_pgbroker.maintenance.runner import MaintenanceRunner
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.partitions import list_partitions
from tests.maintenance.waiting import wait_until
from tests.store.jobs import Shop, completed

PARENTS = ("archived_job_finished", "execution")
INSERT_EXECUTION = """
insert into pgbroker.execution
    (job_id, lease_token, tenant_id, queue_id, job_type_id, leased_at, finished_at, attempt, outcome)
select n, n, 1, 1, 1, at, at, 1, 1 from generate_series(1, %s) as n, (select now() - %s * interval '1 day' as at) as age
"""
INSERT_ARCHIVED = """
insert into pgbroker.archived_job (
    id, tenant_id, queue_id, job_type_id, created_at, available_at, finished_at, state, priority, attempt,
    max_attempts, deaths, interruptions, version, arguments
)
select n, 1, 1, 1, at, at, at, %s, 0, 1, 3, 0, 0, 1, '{}'
from generate_series(1, %s) as n, (select now() - %s * interval '1 day' as at) as age
"""


@pytest.fixture
def past(rows):
    """Makes partitions of the past and fills them; what is left of them afterwards is dropped."""
    made = []

    def make(parent, name, first_day, last_day):
        """From ``first_day`` days ago to ``last_day`` days ago."""
        made.append(name)
        bounds = [
            rows.one("select (date_trunc('day', now(), 'UTC') - %s * interval '24 hours')::text", day)
            for day in (first_day, last_day)
        ]
        rows.run(
            f"create table pgbroker.{name} partition of pgbroker.{parent}"
            f" for values from ('{bounds[0]}') to ('{bounds[1]}')"
        )
        return name

    yield make
    for name in made:
        rows.run(f"drop table if exists pgbroker.{name} cascade")


def exists(rows, name):
    return rows.one("select to_regclass(%s) is not null", f"pgbroker.{name}")


def test_partitions_past_the_limit_go_with_their_rows_and_younger_ones_stay(gateway, rows, past):
    old = [past(parent, f"{parent}_old", 120, 92) for parent in PARENTS]
    young = [past(parent, f"{parent}_young", 90, 85) for parent in PARENTS]
    rows.run(INSERT_EXECUTION, 5, 100)
    rows.run(INSERT_EXECUTION, 3, 86)
    rows.run(INSERT_ARCHIVED, 10, 5, 100)

    swept = Retention().tick(gateway, batch=10)

    assert (swept.moved, swept.has_more) == (2, False)
    assert [exists(rows, name) for name in old + young] == [False, False, True, True]
    assert rows.one("select count(*) from pgbroker.execution") == 3
    assert rows.one("select count(*) from pgbroker.archived_job") == 0
    assert Retention().tick(gateway, batch=10).moved == 0


def test_far_off_partitions_go_and_open_ended_ones_stay(gateway, rows, past):
    past("execution", "execution_ancient", 400_000, 300_000)
    rows.run("create table pgbroker.execution_beginning partition of pgbroker.execution"
             " for values from (minvalue) to ('0900-01-01 BC')")  # fmt: skip
    rows.run("create table pgbroker.execution_end partition of pgbroker.execution"
             " for values from ('9999-01-01') to (maxvalue)")  # fmt: skip
    try:
        assert Retention().tick(gateway, batch=10).moved == 2
        assert not exists(rows, "execution_ancient")
        assert not exists(rows, "execution_beginning")
        assert exists(rows, "execution_end")
    finally:
        rows.run("drop table if exists pgbroker.execution_beginning, pgbroker.execution_end")


def test_dead_letters_never_go_by_age(gateway, rows):
    rows.run(INSERT_ARCHIVED, 13, 3, 4000)

    with override_settings(PGBROKER={"RETENTION_DAYS": 1}):
        Retention().tick(gateway, batch=10)

    assert rows.one("select count(*) from pgbroker.archived_job_dead") == 3


def test_without_a_limit_everything_stays(gateway, rows, past):
    past("execution", "execution_old", 4000, 3900)
    rows.run(INSERT_EXECUTION, 3, 5000)

    with override_settings(PGBROKER={"RETENTION_DAYS": None}):
        assert Retention().tick(gateway, batch=10).moved == 0

    assert exists(rows, "execution_old")
    assert rows.one("select count(*) from pgbroker.execution_default") == 3


def test_old_rows_of_a_default_partition_go_in_batches_and_young_ones_stay(gateway, rows):
    rows.run(INSERT_EXECUTION, 5, 91)
    rows.run(INSERT_EXECUTION, 2, 60)
    rows.run(INSERT_ARCHIVED, 12, 2, 91)

    swept = [Retention().tick(gateway, batch=3) for _ in range(2)]

    assert [(each.moved, each.has_more) for each in swept] == [(3, True), (2, False)]
    assert rows.one("select count(*) from pgbroker.execution_default") == 2
    assert rows.one("select count(*) from pgbroker.archived_job_finished_default") == 0


def test_a_long_past_goes_a_handful_of_partitions_at_a_time(gateway, rows, past):
    for day in range(10):
        past("execution", f"execution_day{day}", 200 - day, 199 - day)

    swept = [Retention().tick(gateway, batch=10) for _ in range(2)]

    assert [(each.moved, each.has_more) for each in swept] == [(8, True), (2, False)]


def test_a_reader_of_the_history_delays_retention_and_an_acknowledge_behind_it_goes_on_soon(gateway, rival, rows, past):
    """The DETACH waits for the reader, the acknowledge for the DETACH: no longer than the lock timeout."""
    past("execution", "execution_old", 120, 92)
    shop = Shop(rows)
    claim = shop.claim_one(rows.gateway)
    with rival.transaction(), ThreadPoolExecutor(1) as pool:
        rival.connection.execute("select count(*) from pgbroker.execution")
        backend = gateway.connection.info.backend_pid
        answer = pool.submit(Retention().tick, gateway, 10)
        waits = "select count(*) from pg_locks where pid = %s and not granted and mode = 'AccessExclusiveLock'"
        wait_until(lambda: answer.done() or rows.one(waits, backend), "the DETACH waits for the reader")
        began = time.monotonic()
        report = acknowledge_jobs(rows.gateway, [completed(claim)])
        waited = time.monotonic() - began
        with pytest.raises(psycopg.errors.LockNotAvailable):
            answer.result(10)
    # 200 ms by the server's clock; the rest is for a busy machine, and less than a second try would take
    assert waited < 2
    assert (set(report.busy | report.stale), len(shop.executions(claim.id))) == (set(), 1)
    assert exists(rows, "execution_old")
    assert Retention().tick(gateway, batch=10).moved == 1
    assert len(shop.executions(claim.id)) == 1


def test_who_reads_the_old_partition_by_its_name_holds_up_nobody_else(gateway, rival, rows, past):
    """A vacuum at work, say: retention gives up before it locks the parent."""
    past("execution", "execution_old", 120, 92)
    with rival.transaction():
        rival.connection.execute("lock table pgbroker.execution_old in share update exclusive mode")
        with rows.gateway.transaction():
            rows.run(INSERT_EXECUTION, 1, 0)
            # a wait for the parent would now last 200 ms and fail there; NOWAIT on the partition fails before
            with pytest.raises(psycopg.errors.LockNotAvailable, match="execution_old"):
                Retention().tick(gateway, batch=10)
    assert Retention().tick(gateway, batch=10).moved == 1


def test_acknowledges_at_full_speed_lose_nothing_while_partitions_go(gateway, rows, rival, past):
    for day in range(4):
        for parent in PARENTS:
            past(parent, f"{parent}_day{day}", 200 - day, 199 - day)
    shop = Shop(rows)
    shop.fill(3000)
    finished = threading.Event()

    def work():
        done = 0
        while (not finished.is_set() or not done) and (claims := shop.claim(rival, 5)):
            report = acknowledge_jobs(rival, [completed(claim) for claim in claims])
            assert not report.busy
            assert not report.stale
            done += len(claims)
        return done

    with ThreadPoolExecutor(1) as pool:
        worker = pool.submit(work)
        try:
            moved = 0
            for _ in range(20):
                with suppress(psycopg.errors.LockNotAvailable):
                    moved += Retention().tick(gateway, batch=10).moved
                if not any("_day" in each.name for each in list_partitions(gateway)):
                    break
        finally:
            finished.set()
        done = worker.result(30)

    assert moved <= 8
    assert not [each for each in list_partitions(gateway) if "_day" in each.name]
    assert rows.one("select count(*) from pgbroker.execution") == done
    assert rows.one("select count(*) from pgbroker.archived_job") == done
    assert rows.one("select count(*) from pgbroker.job") == 3000 - done


def test_two_processes_drop_each_partition_once(gateway, rival, rows, past):
    for day in range(6):
        past("execution", f"execution_day{day}", 200 - day, 199 - day)
    with ThreadPoolExecutor(2) as pool:
        ticks = [pool.submit(Retention().tick, each, 10) for each in (gateway, rival)]
        moved = []
        for tick in ticks:
            try:
                moved.append(tick.result(20).moved)
            except psycopg.errors.LockNotAvailable:
                moved.append(0)

    moved.append(Retention().tick(gateway, batch=10).moved)
    assert not [each for each in list_partitions(gateway) if each.name.startswith("execution_day")]
    assert sum(moved) <= 6


def test_a_partition_that_cannot_go_keeps_no_other_one(gateway, rows, past):
    past("execution", "execution_viewed", 130, 120)
    past("execution", "execution_old", 120, 110)
    rows.run("create view pgbroker.my_report as select * from pgbroker.execution_viewed")

    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="my_report"):
        Retention().tick(gateway, batch=10)

    assert not exists(rows, "execution_old")
    assert "execution_viewed" in {each.name for each in list_partitions(gateway)}, "attached as before"


def test_it_is_one_of_the_duties_of_workers_and_of_the_reaper():
    assert Retention in DUTIES
    assert Retention in REAPER_DUTIES


def test_a_broker_left_running_for_a_year_keeps_a_bounded_history(gateway, rows):
    """The duties as workers run them, while the clock of the broker goes on by weeks."""
    original = rows.one("select pg_get_functiondef('pgbroker.clock()'::regprocedure)")
    counts = []
    try:
        for week in range(0, 53, 4):
            rows.run(
                "create or replace function pgbroker.clock() returns timestamptz language sql stable parallel safe"
                f" as $$ select statement_timestamp() + interval '{week} weeks' $$"
            )
            MaintenanceRunner("default", [Partitioner, Retention], threading.Event()).run_once()
            rows.run(INSERT_EXECUTION, 10, -7 * week)
            counts.append((len(list_partitions(gateway)), rows.one("select count(*) from pgbroker.execution")))
        # in the default partition, as after a month without any worker
        assert rows.one("select count(*) from pgbroker.execution_default") == 0
    finally:
        rows.run(original)
        for each in list_partitions(gateway):
            if not each.is_default:
                rows.run(f"drop table pgbroker.{each.name}")
        Partitioner().tick(gateway, batch=10)

    assert max(partitions for partitions, _ in counts) <= 40
    assert max(executions for _, executions in counts) <= 50
    assert counts[-1] == counts[-2], "it has come to rest"


def retention(*arguments):
    output = StringIO()
    call_command("pgbroker_retention", *arguments, stdout=output)
    return output.getvalue()


def test_the_dry_run_shows_what_would_go_and_changes_nothing(rows, past):
    past("execution", "execution_old", 120, 92)
    rows.run(INSERT_EXECUTION, 7, 100)
    rows.run("analyze pgbroker.execution_old")
    rows.run(INSERT_ARCHIVED, 10, 2, 100)

    found = json.loads(retention("--dry-run", "--json"))
    text = retention("--dry-run")

    (partition,) = found["partitions"]
    assert (partition["name"], partition["rows"]) == ("execution_old", 7)
    assert partition["bytes"] == rows.one("select pg_total_relation_size('pgbroker.execution_old')")
    assert (found["retention_days"], found["is_dry_run"], found["default_rows"]) == (90, True, 2)
    assert "execution_old" in text
    assert "1 partitions with about 7 rows" in text
    assert "2 rows of default partitions would go" in text
    assert exists(rows, "execution_old")
    assert json.loads(retention("--dry-run", "--json", "--days", "400"))["partitions"] == []


def test_the_command_drops_what_is_past_the_limit_and_says_so(rows, past):
    past("execution", "execution_old", 120, 92)
    rows.run(INSERT_ARCHIVED, 10, 2, 100)

    found = json.loads(retention("--json"))

    assert [each["name"] for each in found["partitions"]] == ["execution_old"]
    assert (found["default_rows"], found["left"], found["is_dry_run"]) == (2, [], False)
    assert not exists(rows, "execution_old")
    assert "nothing goes" in retention()


def test_the_command_says_what_to_do_when_somebody_reads_the_history(rows, rival, past):
    past("execution", "execution_old", 120, 92)
    with rival.transaction():
        rival.connection.execute("select count(*) from pgbroker.execution")
        with pytest.raises(CommandError, match="Run this again"):
            retention()
    assert exists(rows, "execution_old")


def test_another_limit_is_only_shown():
    with pytest.raises(CommandError, match="--dry-run"):
        retention("--days", "5")


def test_the_command_says_when_history_is_kept_for_ever(broker_database):
    with override_settings(PGBROKER={"RETENTION_DAYS": None}):
        assert "kept for ever" in retention()
