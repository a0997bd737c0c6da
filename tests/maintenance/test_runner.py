"""The loop over duties: one process at a time, told after the commit, unimpressed by errors and lost servers."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import psycopg
import pytest
from django.db import connections
from psycopg.pq import TransactionStatus

from django_pgbroker.domain.states import JobState
from django_pgbroker.maintenance.duties import DUTIES, REAPER_DUTIES, SCHEDULER_DUTIES
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.maintenance.expirer import Expirer
from django_pgbroker.maintenance.promoter import Promoter
from django_pgbroker.maintenance.runner import DutyReport, MaintenanceRunner
from django_pgbroker.store.duty_lock import duty_key, try_duty_lock
from tests.maintenance.waiting import wait_until


class SmallExpirer(Expirer):
    batch_size = 2


class Counter(Duty):
    """Counts its ticks."""

    name = "counter"
    interval_seconds = 0.02

    def __init__(self) -> None:
        self.ticks = type(self).ticks = []

    def tick(self, gateway, batch):
        self.ticks.append(batch)
        return Swept(0)


def events(caplog):
    return [record.event for record in caplog.records if hasattr(record, "event")]


@contextmanager
def running(*duties) -> Iterator[MaintenanceRunner]:
    stopping = threading.Event()
    runner = MaintenanceRunner("default", duties, stopping, label="drill")
    runner.start()
    try:
        yield runner
    finally:
        stopping.set()
        assert runner.join()


def run_once(*duties):
    return MaintenanceRunner("default", duties, threading.Event()).run_once()


BACKEND = "select pid from pg_stat_activity where application_name = 'pgbroker maintenance drill'"


def test_every_duty_has_a_lock_and_a_name_of_its_own():
    assert len({duty_key(duty.name) for duty in DUTIES}) == len(DUTIES) == 11
    assert set(SCHEDULER_DUTIES) | set(REAPER_DUTIES) == set(DUTIES)


def test_all_duties_run_once_on_an_empty_database(gateway):
    assert [report.name for report in run_once(*DUTIES)] == [duty.name for duty in DUTIES]


def test_a_duty_repeats_while_its_batches_come_back_full(gateway, rows):
    for _ in range(5):
        rows.job(rows.queue(), expires_in=-1)
    assert run_once(SmallExpirer) == [DutyReport("expirer", 5)]


def test_a_duty_that_another_process_is_in_is_skipped_until_that_one_is_done(rival, rows):
    job = rows.job(rows.queue(), expires_in=-1)
    with rival.transaction():
        assert try_duty_lock(rival, "expirer")
        assert run_once(Expirer) == [DutyReport("expirer", None)]
        assert rows.state_of(job) is JobState.PENDING
    assert run_once(Expirer) == [DutyReport("expirer", 1)]


def test_the_lock_of_one_duty_leaves_the_others_free(rival, rows):
    rows.job(rows.queue(), expires_in=-1)
    with rival.transaction():
        assert try_duty_lock(rival, "promoter")
        assert run_once(Expirer) == [DutyReport("expirer", 1)]


def test_several_runners_at_once_do_the_work_of_one(rows):
    queue = rows.queue()
    jobs = [rows.job(queue, expires_in=-1) for _ in range(40)]
    with running(SmallExpirer), running(SmallExpirer), running(SmallExpirer):
        wait_until(lambda: rows.one("select count(*) from pgbroker.job") == 0, "all jobs expired")
    assert rows.one("select array_agg(id order by id) from pgbroker.archived_job") == jobs


def test_a_woken_queue_is_announced_when_its_jobs_can_be_claimed(rows, heard):
    job = rows.job(rows.queue("letters"), JobState.SCHEDULED, due_in=-1)
    run_once(Promoter)
    assert heard() == {"letters"}
    assert rows.state_of(job) is JobState.PENDING


class FailsToCommit(Duty):
    name = "fails_to_commit"
    interval_seconds = 1
    told: list[str] = []

    def tick(self, gateway, batch):
        gateway.connection.execute(
            "create temporary table twice (n int unique deferrable initially deferred) on commit drop"
        )
        gateway.connection.execute("insert into twice values (1), (1)")
        return Swept(2, reports=(lambda: self.told.append("done"),))


def test_what_was_not_committed_is_not_told(broker_database):
    with pytest.raises(psycopg.errors.UniqueViolation):
        run_once(FailsToCommit)
    assert FailsToCommit.told == []


class OwnTransactions(Duty):
    name = "own_transactions"
    interval_seconds = 1
    in_transaction = False

    def tick(self, gateway, batch):
        return Swept(int(gateway.connection.info.transaction_status == TransactionStatus.IDLE))


def test_a_duty_that_commits_by_itself_is_given_no_transaction(broker_database):
    assert run_once(OwnTransactions) == [DutyReport("own_transactions", 1)]


def test_a_tick_that_moved_something_is_told_and_an_idle_one_is_not(rows, caplog):
    rows.job(rows.queue(), expires_in=-1)
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        run_once(Expirer)
        run_once(Expirer)
    assert events(caplog) == ["maintenance.swept"]
    assert caplog.records[0].fields["moved"] == 1


class Broken(Duty):
    """Fails until its table exists."""

    name = "broken"
    interval_seconds = 0.02

    def tick(self, gateway, batch):
        return Swept(gateway.connection.execute("select n from pgbroker.made_later").fetchone()[0])


def test_a_failing_duty_backs_off_and_is_told_once_while_the_others_go_on(rows, caplog):
    with caplog.at_level(logging.INFO, "django_pgbroker"), running(Broken, Counter):
        wait_until(lambda: "maintenance.failed" in events(caplog), "the failure is told")
        seen = len(Counter.ticks)
        wait_until(lambda: len(Counter.ticks) > seen + 20, "the other duty goes on")
        try:
            rows.run("create table pgbroker.made_later as select 0 as n")
            wait_until(lambda: "maintenance.recovered" in events(caplog), "the duty works again")
        finally:
            rows.run("drop table pgbroker.made_later")
    assert events(caplog)[:2] == ["maintenance.failed", "maintenance.recovered"]


class Buggy(Duty):
    name = "buggy"
    interval_seconds = 0.02

    def tick(self, gateway, batch):
        raise ZeroDivisionError("a bug")


def test_a_bug_in_a_duty_is_logged_with_its_traceback_and_ends_nothing(broker_database, caplog):
    with running(Buggy, Counter):
        wait_until(lambda: "maintenance.failed" in events(caplog), "the failure is told")
        seen = len(Counter.ticks)
        wait_until(lambda: len(Counter.ticks) > seen, "the other duty goes on")
    assert "ZeroDivisionError" in caplog.text


class Blocked(Duty):
    """Waits for a lock on a queue row, and remembers its batches."""

    name = "blocked"
    interval_seconds = 0.02
    batch_size = 100

    def __init__(self) -> None:
        self.batches = type(self).batches = []

    def tick(self, gateway, batch):
        self.batches.append(batch)
        gateway.connection.execute("set local lock_timeout = '20ms'")
        gateway.connection.execute("select 1 from pgbroker.queue for update")
        return Swept(0)


def test_after_a_lock_time_out_the_batch_is_halved_and_grows_back_slowly(rival, rows):
    rows.queue()
    with running(Blocked):
        with rival.transaction():
            rival.connection.execute("select 1 from pgbroker.queue for update")
            wait_until(lambda: len(Blocked.batches) >= 2, "a second try")
        assert Blocked.batches[:2] == [100, 50]
        wait_until(lambda: Blocked.batches[-1] == 100, "the full batch is back")
    steps = [later - earlier for earlier, later in pairwise(Blocked.batches)]
    assert {step for step in steps if step > 0} == {5}


class Insatiable(Duty):
    name = "insatiable"
    interval_seconds = 1
    ticks = 0

    def tick(self, gateway, batch):
        type(self).ticks += 1
        return Swept(batch, has_more=True)


def test_a_duty_that_is_never_done_leaves_the_others_their_turn(broker_database):
    with running(Insatiable, Counter):
        wait_until(lambda: Insatiable.ticks > 20, "it is at work")
        seen = len(Counter.ticks)
        wait_until(lambda: len(Counter.ticks) > seen, "the other duty ticks")


def test_a_connection_that_was_cut_is_opened_again(rows, caplog):
    with caplog.at_level(logging.INFO, "django_pgbroker"), running(Counter):
        wait_until(lambda: rows.one(BACKEND), "the runner is connected")
        rows.run(f"select pg_terminate_backend(pid, 5000) from ({BACKEND}) as victim")
        wait_until(lambda: "maintenance.database_back" in events(caplog), "the duties go on")
    assert events(caplog) == ["maintenance.database_lost", "maintenance.database_back"]


@contextmanager
def database_closed(rows) -> Iterator[None]:
    """Nobody can connect to the test database; those who are connected stay, but for the runner."""
    params = connections["default"].get_connection_params()
    keys = ("host", "port", "user", "password")
    options = {key: params[key] for key in keys if params.get(key)}
    name = params["dbname"]
    with psycopg.connect(**options, dbname="postgres", autocommit=True) as elsewhere:
        elsewhere.execute(f'alter database "{name}" allow_connections false')
        try:
            rows.run(f"select pg_terminate_backend(pid, 5000) from ({BACKEND}) as victim")
            yield
        finally:
            elsewhere.execute(f'alter database "{name}" allow_connections true')


def test_a_database_that_is_away_is_told_once_and_tried_again_without_a_busy_loop(rows, caplog, monkeypatch):
    tries = []
    with caplog.at_level(logging.INFO, "django_pgbroker"), running(Counter) as runner:
        draw_wait = runner._reconnect.next_seconds

        def note_wait():
            tries.append((time.monotonic(), draw_wait()))
            return tries[-1][1]

        monkeypatch.setattr(runner._reconnect, "next_seconds", note_wait)
        wait_until(lambda: rows.one(BACKEND), "the runner is connected")
        with database_closed(rows):
            wait_until(lambda: len(tries) >= 4, "several tries")
        wait_until(lambda: "maintenance.database_back" in events(caplog), "the duties go on")
    assert events(caplog) == ["maintenance.database_lost", "maintenance.database_back"]
    assert all(later - earlier >= wait for (earlier, wait), (later, _) in pairwise(tries))
    assert tries[3][1] >= 0.4


def test_a_stop_ends_a_runner_that_waits_for_its_next_tick(rows):
    class Rare(Counter):
        interval_seconds = 3600

    with running(Rare) as runner:
        wait_until(lambda: Rare.ticks, "the first tick")
    assert len(Rare.ticks) == 1
    wait_until(lambda: rows.one(BACKEND) is None, "the connection is closed")
    # the runner is still at hand, so it closed its connection and the garbage collector did not
    assert runner.join()


class Stuck(Duty):
    name = "stuck"
    interval_seconds = 1

    def tick(self, gateway, batch):
        gateway.connection.execute("select pg_sleep(60)")
        return Swept(0)


def test_a_stop_cancels_a_statement_that_holds_it_up_and_logs_no_failure(rows, caplog):
    with running(Stuck):
        wait_until(lambda: rows.one(f"{BACKEND} and query like '%%pg_sleep%%' and state = 'active'"), "it sleeps")
    assert events(caplog) == []
