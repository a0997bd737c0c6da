"""The event loop that runs handlers: many at once, each by itself, and the ORM in a few threads."""

import asyncio
import threading

from asgiref.sync import sync_to_async
from django.db import connection, transaction

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import Queue
from django_pgbroker.worker.context import current_job
from tests.maintenance.waiting import wait_until
from tests.worker.loop_trials import make_trial, statement

__all__ = ["make_trial"]


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
