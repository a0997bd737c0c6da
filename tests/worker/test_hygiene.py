"""Django's connections between two jobs of one slot: alive before, clean after (B043, B044, B045, B057).

Every test runs its jobs in a whole worker with one slot, so that one job follows the other on the same thread.
"""

import asyncio
from contextlib import suppress
from functools import partial

import pytest
from asgiref.sync import sync_to_async
from django.db import DatabaseError, connection, connections, transaction

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob
from tests.maintenance.waiting import wait_until

TABLE = "create table note (text text, constraint note_once unique (text) deferrable initially deferred)"

OPEN_TRANSACTION = "django_pgbroker.worker.hygiene.OpenTransaction"


@pytest.fixture
def notes(broker_database):
    """A table that handlers write to, with a key that is checked at the commit."""
    with connection.cursor() as cursor:
        cursor.execute(TABLE)
    yield read_notes
    with connection.cursor() as cursor:
        cursor.execute("drop table note")


def read_notes():
    return {row[0] for row in ask("select text from note")}


def ask(text):
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall()


def write(text):
    with connection.cursor() as cursor:
        cursor.execute("insert into note values (%s)", [text])


def raw_begin():
    with connection.cursor() as cursor:
        cursor.execute("begin")
    write("first")


def enter_atomic():
    transaction.atomic().__enter__()
    write("first")


def enter_atomic_twice():
    transaction.atomic().__enter__()
    transaction.atomic().__enter__()
    write("first")


def switch_autocommit_off():
    transaction.set_autocommit(False)
    write("first")


def swallow_an_abort():
    transaction.atomic().__enter__()
    with suppress(DatabaseError):
        ask("select 1/0")


def raw_begin_and_abort():
    with connection.cursor() as cursor:
        cursor.execute("begin")
        with suppress(DatabaseError):
            cursor.execute("select 1/0")


@pytest.fixture
def run_two(declare, run_until_empty, notes):
    """Run a handler once and then, on the same slot, one that writes; return both jobs of the archive."""

    def run_two(handler):
        first = declare("tests.first", max_attempts=1)(handler).enqueue()
        second = declare("tests.second")(lambda: write("second")).enqueue()
        assert run_until_empty(concurrency=1) == 0
        done = ArchivedJob.objects.get(pk=second.id)
        assert (done.state, done.attempt) == (JobState.COMPLETED, 1)
        assert "second" in notes()
        return ArchivedJob.objects.get(pk=first.id)

    return run_two


@pytest.mark.parametrize(
    "handler",
    [raw_begin, enter_atomic, enter_atomic_twice, switch_autocommit_off, swallow_an_abort, raw_begin_and_abort],
)
def test_a_transaction_left_open_is_rolled_back_fails_its_job_and_spares_the_next_one(run_two, notes, handler):
    first = run_two(handler)
    assert (first.state, first.error_class) == (JobState.DEAD, OPEN_TRANSACTION)
    assert "open transaction on default; it was rolled back" in first.error_message
    assert notes() == {"second"}


def fail_within_a_raw_transaction():
    raw_begin()
    raise ValueError("after the write")


def fail_within_atomic_by_hand():
    transaction.atomic().__enter__()
    write("first")
    raise ValueError("after the write")


def fail_within_atomic():
    with transaction.atomic():
        write("first")
        raise ValueError("after the write")


@pytest.mark.parametrize("handler", [fail_within_a_raw_transaction, fail_within_atomic_by_hand, fail_within_atomic])
def test_an_error_within_a_transaction_is_recorded_as_itself_and_its_writes_are_gone(run_two, notes, handler):
    first = run_two(handler)
    assert (first.state, first.error_class, first.error_message) == (
        JobState.DEAD, "builtins.ValueError", "after the write",
    )  # fmt: skip
    assert notes() == {"second"}


def test_an_error_in_autocommit_that_the_handler_swallows_hurts_nobody(run_two):
    def handler():
        try:
            ask("select 1/0")
        except DatabaseError:
            write("first")

    assert run_two(handler).state == JobState.COMPLETED


def test_a_constraint_that_fails_at_the_commit_is_a_failure_of_the_job(run_two):
    def handler():
        with transaction.atomic():
            write("twice")
            write("twice")

    first = run_two(handler)
    assert (first.state, first.error_class) == (JobState.DEAD, "django.db.utils.IntegrityError")
    assert "note_once" in first.error_message


def test_an_on_commit_hook_that_raises_is_a_failure_of_the_job_whose_writes_stay(run_two, notes):
    def handler():
        with transaction.atomic():
            write("first")
            transaction.on_commit(lambda: 1 / 0)

    assert run_two(handler).error_class == "builtins.ZeroDivisionError"
    assert notes() == {"first", "second"}


def test_an_on_commit_hook_of_a_transaction_left_open_never_runs(run_two):
    ran = []

    def handler():
        transaction.atomic().__enter__()
        transaction.on_commit(lambda: ran.append("hook"))

    run_two(handler)
    assert ran == []


def test_an_async_handler_that_leaves_a_transaction_open_is_found_out_too(run_two, notes):
    from asgiref.sync import sync_to_async

    async def handler():
        await sync_to_async(enter_atomic)()

    assert run_two(handler).error_class == OPEN_TRANSACTION
    assert notes() == {"second"}


def test_no_backend_stays_idle_in_transaction_while_the_worker_lives_on(declare, start, notes, rows):
    jobs = [
        declare(f"tests.{handler.__name__}", max_attempts=1)(handler).enqueue()
        for handler in (raw_begin, enter_atomic, switch_autocommit_off, swallow_an_abort)
    ]
    start(concurrency=2)
    wait_until(lambda: all(handle.status() is JobState.DEAD for handle in jobs), "all are dead")
    idle = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in tr%%'"
    wait_until(lambda: rows.one(idle) == 0, "no backend is idle in a transaction")


def test_handlers_keep_one_connection_between_jobs_whatever_conn_max_age_says(declare, run_until_empty):
    backend = declare("tests.backend")(lambda: ask("select pg_backend_pid()")[0][0])
    handles = [backend.enqueue() for _ in range(5)]
    run_until_empty(concurrency=1)
    assert len({handle.result() for handle in handles}) == 1


def test_async_handlers_use_the_connection_of_their_slot(declare, run_until_empty):
    from asgiref.sync import sync_to_async

    def backend():
        return ask("select pg_backend_pid()")[0][0]

    async def backend_async():
        return await sync_to_async(backend)()

    handles = [
        declare()(backend).enqueue(),
        declare(executor="thread")(backend_async).enqueue(),
        backend_of_a_plain_call(declare),
    ]
    run_until_empty(concurrency=1)
    assert len({handle.result() for handle in handles}) == 1


def backend_of_a_plain_call(declare):
    return declare("tests.plain")(lambda: ask("select pg_backend_pid()")[0][0]).enqueue()


def test_a_connection_that_was_killed_between_two_jobs_is_opened_again_before_the_second(declare, start, rows):
    backend = declare("tests.backend")(lambda: ask("select pg_backend_pid()")[0][0])
    start(concurrency=1)
    first = backend.enqueue()
    wait_until(lambda: first.status() is JobState.COMPLETED, "the first job is done")
    assert rows.one("select pg_terminate_backend(%s::int, 5000)", first.result())

    second = backend.enqueue()

    wait_until(lambda: second.status().is_finished, "the second job is done")
    assert second.status() is JobState.COMPLETED
    assert ArchivedJob.objects.get(pk=second.id).attempt == 1
    assert second.result() != first.result()


def test_a_handler_whose_own_connection_is_killed_fails_and_the_next_attempt_has_a_new_one(declare, start, notes):
    attempts = []

    @declare()
    def suicide():
        attempts.append(1)
        if len(attempts) == 1:
            ask("select pg_terminate_backend(pg_backend_pid())")
        write("alive")

    handle = suicide.enqueue()
    start(concurrency=1)
    wait_until(lambda: handle.status().is_finished, "it is done")
    assert (handle.status(), len(attempts), notes()) == (JobState.COMPLETED, 2, {"alive"})


def test_the_end_of_a_worker_closes_the_connections_of_its_slots(declare, run_until_empty, rows):
    backend = declare("tests.backend")(lambda: ask("select pg_backend_pid()")[0][0]).enqueue()
    run_until_empty()
    gone = "select count(*) from pg_stat_activity where pid = %s"
    wait_until(lambda: rows.one(gone, backend.result()) == 0, "the backend of the slot has ended")


def run_in_asyncio(function):
    """As a sync handler does that has some async code."""
    return asyncio.run(sync_to_async(function)())


@pytest.fixture
def close_after(declare, broker_database, run_until_empty):
    """Closes the connection of that thread at the end."""
    yield
    declare(name="tests.closes")(lambda: run_in_asyncio(connections.close_all)).enqueue()
    run_until_empty(concurrency=1)


def test_a_transaction_that_is_left_open_under_asyncio_run_fails_its_job_and_spares_the_next_one(
    declare, notes, close_after, run_until_empty
):
    @declare(name="tests.opens", max_attempts=1)
    def opens():
        run_in_asyncio(raw_begin)

    @declare(name="tests.writes")
    def writes():
        run_in_asyncio(partial(write, "second"))

    first, second = opens.enqueue(), writes.enqueue()
    run_until_empty(concurrency=1)

    assert (first.status(), second.status()) == (JobState.DEAD, JobState.COMPLETED)
    assert notes() == {"second"}


def test_a_connection_under_asyncio_run_that_the_server_closed_costs_no_later_job_anything(
    declare, close_after, run_until_empty
):
    @declare(max_attempts=1)
    def asks():
        return run_in_asyncio(lambda: ask("select pg_backend_pid()")[0][0])

    first = asks.enqueue()
    run_until_empty(concurrency=1)
    ask(f"select pg_terminate_backend({first.result()}, 5000)")
    second = asks.enqueue()
    run_until_empty(concurrency=1)

    assert second.status() is JobState.COMPLETED
    assert second.result() != first.result()
