"""Async handlers that must end: cancelled or timed out, in whatever they wait, and those that will not."""

import asyncio
import hashlib
import threading
import time

import pytest
from asgiref.sync import sync_to_async

from django_pgbroker.domain.states import Outcome
from django_pgbroker.domain.stops import Stop, StopKind
from tests.maintenance.waiting import wait_until
from tests.worker.loop_trials import CANCELLED, TIMED_OUT, make_trial, statement

__all__ = ["make_trial"]


async def wait_by_await():
    await asyncio.sleep(60)


async def wait_by_sql():
    await sync_to_async(statement)("select pg_sleep(60)")


async def wait_by_sleep_in_a_thread():
    await sync_to_async(time.sleep)(3)


async def loop_in_a_thread():
    def spin():
        while True:
            pass

    await sync_to_async(spin)()


async def wait_in_to_thread():
    await asyncio.to_thread(statement, "select pg_sleep(60)")


WAYS = [wait_by_await, wait_by_sql, wait_by_sleep_in_a_thread, loop_in_a_thread, wait_in_to_thread]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stop", [CANCELLED, TIMED_OUT], ids=["cancelled", "timed out"])
def test_a_handler_that_awaits_ends_at_the_first_call_and_its_thread_is_free_again(
    broker_database, make_trial, rows, way, stop
):
    async def handler(ctx):
        if ctx.id == 1:
            await way()
        return await sync_to_async(statement)("select 1")

    trial = make_trial(handler, sync_threads=1)
    trial.give(1)
    wait_until(trial.pool.running_ids, "it runs")
    if "sql" in way.__name__ or "to_thread" in way.__name__:
        wait_until(
            lambda: rows.one("select count(*) from pg_stat_activity where query = 'select pg_sleep(60)'"), "it waits"
        )
    began = time.monotonic()

    trial.stop(1, stop)

    [verdict] = trial.take()
    assert verdict.outcome is (Outcome.CANCELLED if stop is CANCELLED else Outcome.TIMED_OUT)
    assert verdict.reason == stop.reason
    assert time.monotonic() - began < 2
    trial.give(2)
    assert trial.take()[0].outcome is Outcome.COMPLETED
    wait_until(lambda: trial.pool.hung_count == 0, "no thread is left")
    assert rows.one("select count(*) from pg_stat_activity where query = 'select pg_sleep(60)'") == 0


def test_a_handler_whose_tasks_notice_the_stop_has_stopped_and_not_failed(make_trial):
    async def notice(ctx):
        while not ctx.should_stop():
            await asyncio.sleep(0.01)
        ctx.raise_if_stopped()

    async def handler(ctx):
        async with asyncio.TaskGroup() as group:
            group.create_task(notice(ctx))
            group.create_task(asyncio.sleep(60))

    trial = make_trial(handler)
    trial.give(1)
    wait_until(trial.pool.running_ids, "it runs")
    trial.link.stop = Stop(StopKind.DRAINING, "the worker had to stop")
    trial.link.stopping.add(10)

    [verdict] = trial.take()
    assert (verdict.outcome, verdict.reason) == (Outcome.INTERRUPTED, "the worker had to stop")


def test_a_stop_of_one_job_leaves_the_statement_of_another_in_the_same_thread_alone(broker_database, make_trial, rows):
    async def handler(ctx):
        if ctx.id == 1:
            await sync_to_async(statement)("select 1")
            await asyncio.sleep(60)
        return await sync_to_async(statement)("select 7 from pg_sleep(1)")

    trial = make_trial(handler, sync_threads=1)
    trial.give(1, 2)
    wait_until(lambda: rows.one("select count(*) from pg_stat_activity where query like 'select 7%%'"), "2 waits")

    trial.stop(1)

    by_id = {verdict.job_id: verdict for verdict in trial.take(2)}
    assert by_id[1].outcome is Outcome.CANCELLED
    assert (by_id[2].outcome, by_id[2].result) == (Outcome.COMPLETED, "7")


def test_a_handler_that_swallows_the_first_call_can_be_given_up_and_the_pool_goes_on(make_trial):
    async def handler(ctx):
        if ctx.id == 1:
            while not trial.pool.hung_count or not ctx.should_stop():
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    continue

    trial = make_trial(handler, capacity=1)
    trial.give(1, 2)
    wait_until(lambda: trial.pool.running_ids() == {1}, "it runs")
    trial.stop(1)
    trial.stop(1, is_last_call=True)
    assert trial.pool.running_ids() == {1}

    assert trial.pool.abandon(10)

    assert not trial.pool.abandon(10), "once"
    assert [verdict.job_id for verdict in trial.take()] == [2], "its place is free, and its own verdict is not heard"
    wait_until(lambda: trial.pool.hung_count == 0, "it has ended")


def test_a_handler_that_holds_up_the_loop_is_told_of_and_given_up_and_others_go_on_in_a_fresh_loop(make_trial, caplog):
    is_over = threading.Event()
    resumed = []

    async def handler(ctx):
        if ctx.id == 1:
            while not is_over.is_set():
                hashlib.pbkdf2_hmac("sha256", b"", b"", 1000)
        elif ctx.id == 2:
            await asyncio.sleep(0.3)
            resumed.append(ctx.id)

    trial = make_trial(handler, capacity=3)
    trial.give(2)
    trial.give(1)
    wait_until(lambda: trial.pool.running_ids() == {1, 2}, "both run")
    wait_until(lambda: trial.pool.running() and "async.blocked" in caplog.text, "it is told")
    trial.stop(1)
    trial.stop(1, is_last_call=True)

    assert trial.pool.abandon(10)
    trial.give(3)

    assert [verdict.job_id for verdict in trial.take()] == [3]
    assert trial.pool.running_ids() == {2}
    assert caplog.text.count("async.blocked") == 1
    assert "job=1 " in caplog.text
    assert trial.pool.hung_count == 1
    is_over.set()
    assert [verdict.job_id for verdict in trial.take()] == [2], "the job that was held up ends as well"
    assert resumed == [2]
    wait_until(lambda: trial.pool.hung_count == 0, "the other one has ended")


def test_a_closed_pool_has_cancelled_what_ran_and_left_no_thread(broker_database, make_trial):
    cleaned, asleep = [], []

    async def handler(ctx):
        await sync_to_async(statement)("select 1")
        try:
            asleep.append(ctx.id)
            await asyncio.sleep(60)
        finally:
            cleaned.append(ctx.id)

    before = set(threading.enumerate())
    trial = make_trial(handler)
    trial.give(1, 2)
    wait_until(lambda: len(asleep) == 2, "both run")
    trial.pool.close(5.0)

    assert sorted(cleaned) == [1, 2]
    assert not {thread for thread in set(threading.enumerate()) - before if thread.name.startswith("pgbroker")}
    trial.take(2)
