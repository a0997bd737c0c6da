"""``statement_timeout`` and ``lock_timeout`` of a job type: on the handler's connections, told apart, put back."""

import asyncio

import pytest
from django.db import DatabaseError, connection, connections, transaction

from django_pgbroker import ConfigurationError, JobState, job
from django_pgbroker.domain.states import Outcome
from django_pgbroker.models import ArchivedJob, Execution
from django_pgbroker.worker.options import QueueShare, WorkerOptions
from django_pgbroker.worker.session import open_session

NAMES = ("statement_timeout", "lock_timeout")


def read_limits():
    with connection.cursor() as cursor:
        cursor.execute("select current_setting('statement_timeout'), current_setting('lock_timeout')")
        return list(cursor.fetchone())


def sleep(seconds):
    with connection.cursor() as cursor:
        cursor.execute("select pg_sleep(%s)", [seconds])


@pytest.fixture
def run_in_turn(run_until_empty):
    """Runs jobs one after the other in one slot."""

    def run_in_turn(*job_types):
        handles = [each.enqueue() for each in job_types]
        run_until_empty(concurrency=1)
        return handles

    return run_in_turn


def outcome_of(handle):
    return Outcome(Execution.objects.get(job_id=handle.id).outcome)


def test_the_limits_hold_in_the_handler_and_are_put_back_after_it(declare, run_in_turn):
    before = declare(name="tests.before")(read_limits)
    limited = declare(name="tests.limited", statement_timeout=7, lock_timeout=0.25)(read_limits)
    after = declare(name="tests.after")(read_limits)

    first, second, third = run_in_turn(before, limited, after)

    assert second.result() == ["7s", "250ms"]
    assert third.result() == first.result() != second.result()


def test_they_hold_on_a_connection_that_the_handler_opens(declare, run_in_turn):
    @declare(statement_timeout=7)
    def reopens():
        connection.close()
        return read_limits()[0]

    assert run_in_turn(reopens)[0].result() == "7s"


def test_what_the_host_set_when_the_connection_was_created_is_what_comes_back(declare, run_in_turn):
    def sets():
        with connection.cursor() as cursor:
            cursor.execute("set statement_timeout = '9s'")

    own = declare(name="tests.sets")(sets)
    limited = declare(name="tests.limited", statement_timeout=7)(read_limits)
    after = declare(name="tests.after")(read_limits)
    assert run_in_turn(own, limited, after)[2].result()[0] == "9s"


def test_a_statement_that_takes_too_long_is_a_time_out(declare, run_in_turn):
    @declare(statement_timeout=0.1, max_attempts=1)
    def slow():
        sleep(10)

    [handle] = run_in_turn(slow)
    assert outcome_of(handle) is Outcome.TIMED_OUT
    assert (handle.status(), ArchivedJob.objects.get().reason) == (
        JobState.DEAD,
        "longer than its statement_timeout of 0.1 s",
    )


def test_a_lock_that_is_waited_for_too_long_is_a_time_out(declare, run_in_turn, rival):
    @declare(lock_timeout=0.1, max_attempts=1)
    def waits():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("lock table pgbroker.audit_entry in access exclusive mode")

    with rival.transaction():
        rival.connection.execute("lock table pgbroker.audit_entry in access exclusive mode")
        [handle] = run_in_turn(waits)
    assert outcome_of(handle) is Outcome.TIMED_OUT
    assert ArchivedJob.objects.get().reason == "longer than its lock_timeout of 0.1 s"


def test_a_handler_that_catches_the_error_decides_for_itself(declare, run_in_turn):
    @declare(statement_timeout=0.1)
    def catches():
        try:
            sleep(10)
        except DatabaseError:
            return "caught"

    assert run_in_turn(catches)[0].result() == "caught"


def test_a_cancelled_statement_without_a_limit_is_a_failure(declare, run_in_turn):
    @declare(max_attempts=1)
    def ends_itself():
        with connection.cursor() as cursor:
            cursor.execute("set local statement_timeout = 0")
            cursor.execute("set statement_timeout = '50ms'; select pg_sleep(10)")

    assert outcome_of(run_in_turn(ends_itself)[0]) is Outcome.FAILED


def test_after_a_transaction_that_is_left_open_the_next_job_has_the_limits_of_a_new_connection(declare, run_in_turn):
    def leaves_open():
        with connection.cursor() as cursor:
            cursor.execute("begin")

    limited = declare(name="tests.leaves", statement_timeout=7, max_attempts=1)(leaves_open)
    plain = declare(name="tests.plain")(read_limits)
    first, second = run_in_turn(plain, limited), run_in_turn(plain)
    assert second[0].result() == first[0].result()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, 0.0001, 2_592_001, "5s", True, float("nan")])
def test_a_limit_that_no_server_can_have_is_refused_at_the_declaration(name, value):
    with pytest.raises(ConfigurationError, match=f"tests.bad.*{name}"):
        job("tests.bad", **{name: value})(read_limits)


@pytest.mark.parametrize("name", NAMES)
def test_a_handler_on_the_event_loop_cannot_have_one(name):
    async def handler():
        """Shares its connections."""

    with pytest.raises(ConfigurationError, match=f"{name} needs a connection that no other job uses"):
        job("tests.bad", **{name: 5})(handler)


def test_behind_a_pooler_a_worker_with_such_a_type_does_not_start(declare, settings):
    settings.PGBROKER = {**settings.PGBROKER, "TRANSACTION_POOLER": True}
    declare(statement_timeout=5)(read_limits)
    with pytest.raises(ConfigurationError, match="'tests.read_limits' has a statement_timeout"):
        open_session(WorkerOptions((QueueShare("default"),)))


def test_a_connection_that_the_handler_opened_in_another_thread_costs_it_nothing(declare, run_in_turn):
    limits, wrappers = [], []

    def ask():
        limits.append(read_limits())
        wrappers.append(connections["default"])

    @declare(statement_timeout=7, executor="thread")
    async def asks_elsewhere():
        await asyncio.to_thread(ask)

    [handle] = run_in_turn(asks_elsewhere)
    [wrapper] = wrappers
    wrapper.inc_thread_sharing()
    wrapper.close()

    assert handle.status() is JobState.COMPLETED
    assert limits[0][0] == "7s"
