"""Transactional jobs: the handler's writes, the jobs it enqueues and the acknowledge happen together or not at all."""

import logging

import pytest
from django.db import DatabaseError, ProgrammingError, connection, transaction

from django_pgbroker import ConfigurationError, InvalidOption, JobState, Retry, Snooze, job
from django_pgbroker.domain.states import Outcome
from django_pgbroker.models import ArchivedJob, Execution, Job, StatMinute
from django_pgbroker.store.reclaim import reclaim_jobs
from tests.maintenance.waiting import wait_until

LEDGER = """
create table if not exists atomic_ledger (
    job_id bigint, amount int, constraint one_entry unique (job_id, amount) deferrable initially deferred
)
"""


@pytest.fixture(autouse=True)
def ledger(rows):
    rows.run(LEDGER)
    yield
    rows.run("drop table atomic_ledger")


def book(ctx, amount=1):
    with connection.cursor() as cursor:
        cursor.execute("insert into atomic_ledger values (%s, %s)", [ctx.id, amount])


@pytest.fixture
def booked(rows):
    return lambda: rows.one("select count(*) from atomic_ledger")


def outcomes(handle):
    found = Execution.objects.filter(job_id=handle.id).order_by("lease_token")
    return [Outcome(execution.outcome) for execution in found]


def test_all_is_one_commit(declare, start, gate, booked):
    @declare()
    def follow_up():
        return 2

    @declare(name="tests.pay", atomic=True)
    def pay(ctx):
        book(ctx)
        follow_up.enqueue()
        gate.wait()
        return {"paid": 1}

    handle = pay.enqueue()
    start()
    gate.wait_until_arrived()
    assert booked() == 0
    assert Job.objects.count() == 1

    gate.open()
    wait_until(lambda: ArchivedJob.objects.count() == 2, "both are done")
    assert booked() == 1
    assert handle.result() == {"paid": 1}
    assert outcomes(handle) == [Outcome.COMPLETED]


def test_it_is_counted_once_and_the_worker_ends_clean(declare, run_until_empty):
    @declare(atomic=True)
    def pay(ctx):
        book(ctx)

    handles = [pay.enqueue() for _ in range(20)]
    assert run_until_empty(concurrency=4) == 0
    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    counted = StatMinute.objects.values_list("outcome", "jobs")
    assert {outcome for outcome, _ in counted} == {Outcome.COMPLETED}
    assert sum(jobs for _, jobs in counted) == 20


@pytest.mark.parametrize(
    ("raised", "outcome"), [(ValueError("x"), Outcome.FAILED), (Retry(0), Outcome.FAILED), (Snooze(1), Outcome.SNOOZED)]
)
def test_a_handler_that_raises_has_written_nothing(declare, run_until_empty, booked, raised, outcome):
    @declare(atomic=True, max_attempts=2)
    def pay(ctx):
        book(ctx)
        pay.enqueue()
        if Execution.objects.count() == 0:
            raise raised
        raise KeyError

    handle = pay.enqueue()
    run_until_empty()
    assert booked() == 0
    assert outcomes(handle)[0] is outcome
    assert handle.status() is JobState.DEAD
    assert ArchivedJob.objects.count() == 1


def test_a_constraint_that_fails_at_the_commit_is_a_failure_and_nothing_is_written(declare, run_until_empty, booked):
    @declare(atomic=True, max_attempts=1)
    def pay(ctx):
        book(ctx)
        book(ctx)

    handle = pay.enqueue()
    run_until_empty()
    assert (booked(), outcomes(handle), handle.status()) == (0, [Outcome.FAILED], JobState.DEAD)


def test_a_handler_that_marks_its_transaction_for_rollback_has_failed(declare, run_until_empty, booked):
    @declare(atomic=True, max_attempts=1)
    def pay(ctx):
        book(ctx)
        transaction.set_rollback(True)

    handle = pay.enqueue()
    run_until_empty()
    assert (booked(), outcomes(handle)) == (0, [Outcome.FAILED])


def test_a_hook_that_raises_after_the_commit_is_told_and_the_job_stays_completed(
    declare, run_until_empty, booked, caplog
):
    def fail():
        raise RuntimeError("the hook is broken")

    @declare(atomic=True)
    def pay(ctx):
        book(ctx)
        transaction.on_commit(fail)

    handle = pay.enqueue()
    assert run_until_empty() == 0
    assert (booked(), outcomes(handle), handle.status()) == (1, [Outcome.COMPLETED], JobState.COMPLETED)
    events = [getattr(record, "event", "") for record in caplog.records]
    assert "job.raised_after_commit" in events
    assert "lease.lost" not in events


def test_a_worker_that_lost_its_lease_can_commit_nothing(  # noqa: PLR0917
    declare, start, gate, rows, booked, settings
):
    settings.PGBROKER = {**settings.PGBROKER, "HEARTBEAT_SECONDS": 20}
    paid_by = []

    @declare(atomic=True)
    def pay(ctx):
        book(ctx)
        gate.wait()
        paid_by.append(ctx.attempt)

    handle = pay.enqueue()
    start(concurrency=1)
    gate.wait_until_arrived()
    rows.run("update pgbroker.job set lease_expires_at = now() - interval '1 s', started_at = now()")
    wait_until(lambda: [job.id for job in reclaim_jobs(rows.gateway, batch=10)] == [handle.id], "it is taken back")
    gate.open()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it is run again", seconds=30)
    assert booked() == 1
    assert paid_by == [1, 2]
    assert outcomes(handle) == [Outcome.LOST, Outcome.COMPLETED]


def test_a_cancel_before_the_commit_rolls_all_back(declare, start, gate, booked, settings):
    settings.PGBROKER = {**settings.PGBROKER, "LISTEN": False}  # so that only the closing statement knows

    @declare(atomic=True)
    def pay(ctx):
        book(ctx)
        gate.wait()

    handle = pay.enqueue()
    start()
    gate.wait_until_arrived()
    handle.cancel(actor="ada", reason="wrong account")
    gate.open()
    wait_until(lambda: handle.status() is JobState.CANCELLED, "it has ended")
    assert booked() == 0
    assert outcomes(handle) == [Outcome.CANCELLED]
    assert ArchivedJob.objects.get().reason == "cancelled by ada: wrong account"


def test_a_result_that_cannot_be_stored_does_not_undo_the_work(declare, run_until_empty, booked):
    @declare(atomic=True)
    def pay(ctx):
        book(ctx)
        return {1, 2}

    handle = pay.enqueue()
    run_until_empty()
    assert (booked(), handle.status()) == (1, JobState.COMPLETED)
    assert ArchivedJob.objects.get().reason.startswith("result not stored")


def test_the_time_out_ends_it_and_nothing_is_written(declare, run_until_empty, booked, settings):
    settings.PGBROKER = {**settings.PGBROKER, "STOP_GRACE_SECONDS": 2}

    @declare(atomic=True, timeout=1, max_attempts=1)
    def pay(ctx):
        book(ctx)
        with connection.cursor() as cursor:
            cursor.execute("select pg_sleep(30)")

    handle = pay.enqueue()
    run_until_empty()
    assert (booked(), outcomes(handle)) == (0, [Outcome.TIMED_OUT])


def test_a_lost_connection_is_a_failure_that_is_tried_again(declare, run_until_empty, booked):
    @declare(atomic=True)
    def pay(ctx):
        book(ctx)
        if ctx.attempt == 1:
            with connection.cursor() as cursor:
                cursor.execute("select pg_terminate_backend(pg_backend_pid())")

    handle = pay.enqueue()
    run_until_empty()
    assert (booked(), outcomes(handle)) == (1, [Outcome.FAILED, Outcome.COMPLETED])


def test_the_job_row_is_not_locked_before_the_closing_statement(declare, start, gate, rows):
    @declare(atomic=True)
    def pay(ctx):
        book(ctx)
        gate.wait()

    pay.enqueue()
    start()
    gate.wait_until_arrived()
    assert rows.one("select id from pgbroker.job for update nowait")
    gate.open()


def test_its_time_out_is_short_unless_it_says_more(declare, broker_database):
    short, long, plain = (
        declare(name="tests.short", atomic=True)(book),
        declare(name="tests.long", atomic=True, timeout=120)(book),
        declare(name="tests.plain")(book),
    )
    handles = [each.enqueue() for each in (short, long, plain)]
    found = dict(Job.objects.values_list("id", "timeout_seconds"))
    assert [found[handle.id] for handle in handles] == [30, 120, 300]
    with pytest.raises(InvalidOption, match="timeout must be .* 3,600"):
        short.using(timeout=3601).enqueue()


def test_what_cannot_be_transactional_is_refused_at_the_declaration():
    async def handler():
        """No transaction spans an await."""

    with pytest.raises(ConfigurationError, match="atomic=True needs an ordinary function"):
        job("tests.bad", atomic=True)(handler)
    with pytest.raises(ConfigurationError, match="atomic must be True or False"):
        job("tests.bad", atomic=1)(book)
    with pytest.raises(ConfigurationError, match="may take 3,600 s at most"):
        job("tests.bad", atomic=True, timeout=3601)(book)


def test_the_least_role_of_an_application_can_close_its_job_and_nothing_else(broker_database, rows):
    """It may run one function, which is fenced by id and token."""
    rows.run("create role atomic_least nologin")
    try:
        rows.run("grant usage on schema pgbroker to atomic_least")
        rows.run("grant execute on function pgbroker.complete_job(bigint, bigint, bigint, jsonb, text) to atomic_least")
        running = rows.job(rows.queue(), JobState.RUNNING, lease_in=60, attempt=1)
        token = rows.one("select lease_token from pgbroker.job where id = %s", running)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("set local role atomic_least")
            with pytest.raises(DatabaseError, match="the claim of job .* is over"), transaction.atomic():
                cursor.execute("select pgbroker.complete_job(%s, %s, 5, null, null)", [running, token + 1])
            cursor.execute("select pgbroker.complete_job(%s, %s, 5, null, null)", [running, token])
        assert rows.state_of(running) is JobState.COMPLETED
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("set local role atomic_least")
            with pytest.raises(ProgrammingError, match="permission denied"):
                cursor.execute("delete from pgbroker.job")
            transaction.set_rollback(True)
    finally:
        rows.run("drop owned by atomic_least")
        rows.run("drop role atomic_least")


def test_an_ordinary_job_beside_it_is_acknowledged_as_ever(declare, run_until_empty, booked, caplog):
    @declare(name="tests.atomic", atomic=True)
    def pay(ctx):
        book(ctx)

    @declare(name="tests.plain")
    def plain(ctx):
        book(ctx)

    handles = [kind.enqueue() for kind in (pay, plain) * 10]
    with caplog.at_level(logging.WARNING, "django_pgbroker"):
        run_until_empty(concurrency=4)
    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    assert booked() == 20
    assert not [record for record in caplog.records if getattr(record, "event", "") == "lease.lost"]
