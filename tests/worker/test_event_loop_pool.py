"""The event loop that runs handlers: many at once, the ORM in a few threads, and how those that must end do."""

import asyncio
import hashlib
import threading
import time
from queue import SimpleQueue

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.models import Queue
from django_pgbroker.registry import JobType
from django_pgbroker.worker.async_executor import AsyncExecutor
from django_pgbroker.worker.context import current_job
from django_pgbroker.worker.executor import Directory
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.pools.event_loop import EventLoopPool
from tests.maintenance.waiting import wait_until
from tests.worker.claims import make_claim
from tests.worker.links import LooseLink

CANCELLED = Stop(StopKind.CANCELLED, "cancelled while it ran")
TIMED_OUT = Stop(StopKind.TIMED_OUT, "longer than its time-out")


class Trial:
    """A pool whose claims run one handler."""

    def __init__(self, handler, capacity=10, sync_threads=5):
        self.link = LooseLink(set(), CANCELLED)
        directory = Directory({1: JobType("tests.handler", handler)}, {1: "default"}, {1: "acme"})
        executor = AsyncExecutor(directory, 1000, self.link, HandlerHeartbeats())
        self.delivered = SimpleQueue()
        self.pool = EventLoopPool(capacity, sync_threads, executor.execute_async, self.delivered.put)
        self.pool.start()

    def give(self, *numbers, **arguments):
        self.pool.give([make_claim(number, arguments) for number in numbers])

    def take(self, count=1):
        return [self.delivered.get(timeout=10) for _ in range(count)]

    def run(self, count, **arguments):
        """The verdicts of so many jobs, in the order of their numbers."""
        self.give(*range(1, count + 1), **arguments)
        return sorted(self.take(count))

    def stop(self, number, stop=CANCELLED, *, is_last_call=False):
        self.link.stop = stop
        self.link.stopping.add(number * 10)
        self.pool.interrupt(number * 10, stop, is_last_call=is_last_call)


@pytest.fixture
def make_trial():
    made = []

    def make_trial(handler, **more):
        made.append(Trial(handler, **more))
        return made[-1]

    yield make_trial
    for trial in made:
        trial.pool.close(5.0)
        assert trial.delivered.empty(), "a verdict too many"


def statement(text):
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchone()[0]


def test_hundreds_of_handlers_wait_at_once_and_all_are_completed(make_trial):
    at_once = most = 0

    async def handler():
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.2)
        at_once -= 1

    trial = make_trial(handler, capacity=300)
    verdicts = trial.run(1000)

    assert most == 300
    assert {verdict.outcome for verdict in verdicts} == {Outcome.COMPLETED}
    assert len({verdict.job_id for verdict in verdicts}) == 1000
    wait_until(lambda: not trial.pool.running_ids(), "nothing runs")


def test_thousands_of_handlers_that_wait_for_nothing_end_too_and_in_their_order(make_trial):
    ran = []

    async def handler():
        ran.append(current_job().id)

    trial = make_trial(handler, capacity=3)
    trial.run(3000)

    assert ran == list(range(1, 3001))


def test_what_waits_can_be_taken_back_and_what_runs_cannot(make_trial):
    event = asyncio.Event()

    async def handler():
        await event.wait()

    trial = make_trial(handler, capacity=2)
    trial.give(*range(1, 11))
    wait_until(lambda: len(trial.pool.running_ids()) == 2, "two run")
    assert trial.pool.backlog_size == 8

    assert sorted(claim.id for claim in trial.pool.take_back()) == list(range(3, 11))

    assert trial.pool.running_ids() == {1, 2}
    trial.pool._home.call(event.set)
    assert sorted(verdict.job_id for verdict in trial.take(2)) == [1, 2]


def test_each_job_has_its_own_context_and_its_own_current_job(make_trial):
    seen = []

    async def handler(ctx):
        await asyncio.sleep(0.01)
        seen.append((ctx.id, current_job().id, await sync_to_async(lambda: current_job().id)()))

    make_trial(handler).run(20)

    assert sorted(seen) == [(number, number, number) for number in range(1, 21)]


def test_errors_results_and_own_cancellations_are_judged_as_in_threads(make_trial):
    async def handler(ctx):
        match ctx.id:
            case 1:
                return {"ok": True}
            case 2:
                raise ValueError("bad")
            case 3:
                raise asyncio.CancelledError
            case 4:
                raise SystemExit(3)
        return asyncio.sleep(0)

    completed, failed, cancelled, left, unrun = make_trial(handler).run(5)

    assert (completed.outcome, completed.result) == (Outcome.COMPLETED, '{"ok":true}')
    assert (failed.outcome, failed.error.error_class) == (Outcome.FAILED, "builtins.ValueError")
    assert (cancelled.outcome, cancelled.next_state) == (Outcome.FAILED, JobState.SCHEDULED)
    assert cancelled.error.error_class == "asyncio.exceptions.CancelledError"
    assert left.error.error_class == "builtins.SystemExit"
    assert unrun.error.error_class.endswith("NothingRan")


def test_a_task_that_a_handler_left_behind_cannot_end_the_loop(make_trial, caplog):
    async def leave():
        raise SystemExit(1)

    async def handler(ctx):
        if ctx.id == 1:
            asyncio.get_running_loop().create_task(leave())

    trial = make_trial(handler)
    trial.run(1)
    wait_until(lambda: "async.loop_failed" in caplog.text, "it is told")

    trial.give(2)
    assert trial.take()[0].outcome is Outcome.COMPLETED


# -------------------------------------------------------------------------------------------- the ORM


def test_the_orm_of_many_jobs_runs_in_as_many_threads_as_the_setting_says_each_with_one_connection(
    broker_database, make_trial
):
    seen, in_order = {}, []

    async def handler(ctx):
        own = [await sync_to_async(lambda: (threading.get_ident(), statement("select pg_backend_pid()")))()]
        await Queue.objects.acount()
        own.append(await sync_to_async(lambda: (threading.get_ident(), statement("select pg_backend_pid()")))())
        seen[ctx.id] = own
        in_order.append(ctx.id)

    verdicts = make_trial(handler, capacity=50, sync_threads=3).run(100)

    assert {verdict.outcome for verdict in verdicts} == {Outcome.COMPLETED}, verdicts
    assert all(first == second for first, second in seen.values()), "a job stays in its thread"
    assert len({thread for (thread, _), _ in seen.values()}) == 3
    assert len({backend for (_, backend), _ in seen.values()}) == 3


def test_three_slow_statements_of_three_jobs_run_at_once(broker_database, make_trial):
    barrier = threading.Barrier(3, timeout=10)

    def wait_for_others():
        statement("select 1")
        barrier.wait()

    async def handler():
        await sync_to_async(wait_for_others)()

    verdicts = make_trial(handler, sync_threads=3).run(3)

    assert [verdict.outcome for verdict in verdicts] == [Outcome.COMPLETED] * 3


def test_a_call_that_returns_with_an_open_transaction_fails_and_the_next_job_finds_a_clean_connection(
    broker_database, make_trial
):
    async def handler(ctx):
        if ctx.id == 1:
            await sync_to_async(transaction.atomic().__enter__)()
        return await sync_to_async(lambda: connection.in_atomic_block)()

    trial = make_trial(handler, sync_threads=1)
    first, second = trial.run(2)

    assert (first.outcome, first.error.error_class.rpartition(".")[2]) == (Outcome.FAILED, "OpenTransaction")
    assert (second.outcome, second.result) == (Outcome.COMPLETED, "false")


def test_a_connection_that_was_killed_between_two_jobs_is_opened_again(broker_database, make_trial, rows):
    async def handler():
        return await sync_to_async(statement)("select pg_backend_pid()")

    trial = make_trial(handler, sync_threads=1)
    [first] = trial.run(1)
    rows.run("select pg_terminate_backend(%s::int, 5000)", int(first.result))
    [second] = trial.run(1)

    assert second.outcome is Outcome.COMPLETED
    assert second.result != first.result


def test_threads_of_to_thread_keep_no_connection(broker_database, make_trial, rows):
    async def handler():
        return await asyncio.to_thread(statement, "select pg_backend_pid()")

    [verdict] = make_trial(handler).run(1)

    wait_until(
        lambda: not rows.one("select count(*) from pg_stat_activity where pid = %s", int(verdict.result)), "closed"
    )


# -------------------------------------------------------------------------------------------- stops


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
