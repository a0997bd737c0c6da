"""A job exists if and only if the caller's transaction commits, however that transaction is made."""

import asyncio
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, DataError, OperationalError, connection, connections, transaction
from django.http import HttpResponse
from django.test import Client, TestCase
from django.urls import path

from django_pgbroker import BrokerDatabaseError, EnqueueConflict, InvalidPayload, JobState, aenqueue, enqueue
from django_pgbroker.conf import get_settings
from django_pgbroker.domain.options import JobOptions
from django_pgbroker.operations.enqueue import decide
from django_pgbroker.store.enqueue import enqueue_job
from django_pgbroker.store.errors import BrokerUnavailable
from django_pgbroker.store.gateway import CallerGateway
from operations.jobs import add


class Undo(Exception):
    """Ends an atomic block with a rollback."""


def failing_view(request):
    add.enqueue(1)
    raise RuntimeError("after the job")


def working_view(request):
    return HttpResponse(str(add.enqueue(1).id))


async def async_view(request):
    return HttpResponse(str((await add.aenqueue(1)).id))


urlpatterns = [path("fail", failing_view), path("work", working_view), path("async", async_view)]


def poisoned_job():
    """A job that the database refuses, past all checks."""
    return decide(add, JobOptions(), get_settings()), '{"left": 1e400000}'


def test_in_autocommit_a_job_is_there_at_once(observer):
    handle = add.enqueue(1)

    assert observer.job_ids() == [handle.id]


def test_a_job_is_seen_by_others_after_the_commit_and_not_before(observer):
    with transaction.atomic():
        handle = add.enqueue(1)
        assert handle.status() is JobState.PENDING
        assert observer.job_ids() == []

    assert observer.job_ids() == [handle.id]


def test_a_rollback_leaves_no_job(observer):
    with suppress(Undo), transaction.atomic():
        add.enqueue(1)
        raise Undo

    assert observer.job_ids() == []
    assert observer.value("select count(*) from pgbroker.job_payload") == 0


def test_a_savepoint_takes_only_its_own_jobs_back(observer):
    with transaction.atomic():
        outer = add.enqueue(1)
        with suppress(Undo), transaction.atomic():
            add.enqueue(2)
            raise Undo
        after = add.enqueue(3)

    assert observer.job_ids() == [outer.id, after.id]


def test_atomic_requests_tie_the_job_to_the_request(observer, settings):
    settings.ROOT_URLCONF = __name__
    connection.settings_dict["ATOMIC_REQUESTS"] = True
    try:
        client = Client(raise_request_exception=False)
        assert client.get("/fail").status_code == 500
        assert observer.job_ids() == []
        answer = client.get("/work")
        assert observer.job_ids() == [int(answer.content)]
    finally:
        connection.settings_dict["ATOMIC_REQUESTS"] = False


def test_an_on_commit_hook_may_enqueue(observer):
    with transaction.atomic():
        transaction.on_commit(lambda: add.enqueue(1))
        assert observer.job_ids() == []

    assert len(observer.job_ids()) == 1


def test_a_transaction_managed_by_hand_decides_too(observer):
    connection.set_autocommit(False)
    try:
        add.enqueue(1)
        connection.rollback()
        kept = add.enqueue(2)
        assert observer.job_ids() == []
        connection.commit()
    finally:
        connection.set_autocommit(True)

    assert observer.job_ids() == [kept.id]


def test_a_raw_begin_decides_too(observer):
    with connection.cursor() as cursor:
        cursor.execute("begin")
        add.enqueue(1)
        cursor.execute("rollback")

    assert observer.job_ids() == []


def test_an_error_in_a_raw_transaction_never_costs_the_callers_writes(observer):
    add.enqueue(0)

    with connection.cursor() as cursor:
        cursor.execute("begin")
        Group.objects.create(name="kept")
        with pytest.raises(DataError):
            enqueue_job(CallerGateway(), *poisoned_job())
        cursor.execute("commit")

    assert observer.value("select count(*) from auth_group") == 1


def test_times_count_from_the_statement_and_not_from_the_start_of_a_long_transaction(observer):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("select now()")
        began_at = cursor.fetchone()[0]
        cursor.execute("select pg_sleep(0.05)")
        handle = add.using(delay=60, expires=61).enqueue(1)

    [(created_at, available_at, expires_at)] = observer.connection.execute(
        "select created_at, available_at, expires_at from pgbroker.job where id = %s", [handle.id]
    ).fetchall()
    assert created_at - began_at >= timedelta(seconds=0.05)
    assert (available_at - created_at, expires_at - created_at) == (timedelta(seconds=60), timedelta(seconds=61))


def test_another_alias_has_a_transaction_of_its_own(observer, second_alias):
    with suppress(Undo), transaction.atomic():
        add.enqueue(1)
        kept = enqueue("tests.add", {"left": 2}, using=second_alias)
        assert observer.job_ids() == [kept.id]
        raise Undo

    assert observer.job_ids() == [kept.id]
    assert kept.using == second_alias
    assert kept.status() is JobState.PENDING


def test_an_enqueue_on_another_alias_leaves_the_callers_connection_and_transaction_alone(observer, second_alias):
    with transaction.atomic():
        raw = connection.connection
        enqueue("tests.add", {"left": 1}, using=second_alias)
        Group.objects.create(name="after")
        assert connection.connection is raw

    assert observer.value("select count(*) from auth_group") == 1


def test_repeatable_read_may_enqueue_to_known_names(observer):
    add.enqueue(0)

    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("set transaction isolation level repeatable read")
        add.enqueue(1)

    assert len(observer.job_ids()) == 2


@pytest.mark.parametrize("is_bound_on_server", [False, True])
def test_an_error_of_enqueue_never_costs_the_callers_writes(observer, is_bound_on_server):
    add.enqueue(0)
    connection.close()
    connection.settings_dict["OPTIONS"] = {"server_side_binding": is_bound_on_server}
    try:
        with transaction.atomic():
            Group.objects.create(name="before")
            with pytest.raises(DataError):
                enqueue_job(CallerGateway(), *poisoned_job())
            Group.objects.create(name="after")
            add.enqueue(1)
    finally:
        connection.close()
        connection.settings_dict["OPTIONS"] = {}

    assert observer.value("select count(*) from auth_group") == 2
    assert len(observer.job_ids()) == 2


def test_an_error_inside_a_pipeline_never_costs_the_callers_writes(observer):
    add.enqueue(0)

    with transaction.atomic():
        Group.objects.create(name="before")
        with connection.connection.pipeline():
            with pytest.raises(DatabaseError):
                enqueue_job(CallerGateway(), *poisoned_job())
            add.enqueue(1)

    assert observer.value("select count(*) from auth_group") == 1
    assert len(observer.job_ids()) == 2


def test_an_error_in_autocommit_leaves_the_connection_usable(observer):
    with pytest.raises(DataError):
        enqueue_job(CallerGateway(), *poisoned_job())

    handle = add.enqueue(1)
    assert observer.job_ids() == [handle.id]


def test_a_refused_argument_leaves_the_transaction_usable(observer):
    with transaction.atomic():
        with pytest.raises(InvalidPayload, match="NUL"):
            enqueue("tests.any", {"text": "x\x00y"})
        Group.objects.create(name="after")

    assert observer.value("select count(*) from auth_group") == 1


def test_a_lock_that_is_not_to_be_had_is_a_conflict_and_a_django_error(observer):
    add.enqueue(0)

    with observer.connection.transaction():
        observer.connection.execute("lock table pgbroker.job in access exclusive mode")
        with transaction.atomic():
            Group.objects.create(name="kept")
            with connection.cursor() as cursor:
                cursor.execute("set local lock_timeout = '50ms'")
            with pytest.raises(EnqueueConflict, match="run the transaction again") as raised:
                add.enqueue(1)

    assert isinstance(raised.value, OperationalError)
    assert (raised.value.sqlstate, raised.value.code) == ("55P03", "enqueue_conflict")
    assert observer.value("select count(*) from auth_group") == 1


def test_a_transaction_that_is_broken_already_is_not_made_to_look_whole(observer):
    add.enqueue(0)

    def lose():
        with transaction.atomic():
            Group.objects.create(name="lost")
            with connection.cursor() as cursor, suppress(DatabaseError):
                cursor.execute("select 1/0")
            add.enqueue(1)

    with pytest.raises(BrokerDatabaseError):
        lose()

    assert observer.value("select count(*) from auth_group") == 0


def test_swallowing_the_error_of_a_broken_transaction_does_not_hide_the_rollback(observer):
    add.enqueue(0)

    with transaction.atomic():
        with connection.cursor() as cursor, pytest.raises(DatabaseError):
            cursor.execute("select 1/0")
        with pytest.raises(BrokerDatabaseError, match="An earlier statement of this transaction failed"):
            add.enqueue(1)
        assert connection.needs_rollback


def test_a_raw_transaction_that_is_broken_already_is_told_what_to_do(observer):
    with connection.cursor() as cursor:
        cursor.execute("begin")
        with pytest.raises(DatabaseError):
            cursor.execute("select 1/0")
        with pytest.raises(BrokerDatabaseError, match="earlier statement of this transaction failed") as raised:
            add.enqueue(1)
        cursor.execute("rollback")
    assert raised.value.sqlstate == "25P02"


def test_a_server_that_is_gone_is_an_operational_error(observer):
    add.enqueue(0)
    observer.connection.execute(f"select pg_terminate_backend({connection.connection.info.backend_pid})")

    with pytest.raises(BrokerUnavailable) as raised:
        add.enqueue(1)

    assert isinstance(raised.value, OperationalError)
    connection.close()


def test_a_database_that_is_not_migrated_says_so(unmigrated_alias):
    with pytest.raises(BrokerDatabaseError, match=r"Run manage\.py migrate"):
        enqueue("tests.add", {"left": 1}, using=unmigrated_alias)


def test_async_code_enqueues_in_the_transaction_of_its_thread(observer):
    async def commit_one_and_roll_back_another():
        def store(fails):
            with transaction.atomic():
                handle = add.enqueue(1)
                if fails:
                    raise RuntimeError
            return handle

        kept = await sync_to_async(store, thread_sensitive=True)(False)
        with pytest.raises(RuntimeError):
            await sync_to_async(store, thread_sensitive=True)(True)
        named = await aenqueue("tests.add", {"left": 2}, delay=60)
        declared = await add.aenqueue(3)
        bound = await add.using(queue="async").aenqueue(4)
        states = [await handle.astatus() for handle in (kept, named, declared, bound)]
        await sync_to_async(connections.close_all, thread_sensitive=True)()
        return [handle.id for handle in (kept, named, declared, bound)], states

    ids, states = asyncio.run(commit_one_and_roll_back_another())

    assert observer.job_ids() == ids
    assert states == [JobState.PENDING, JobState.SCHEDULED, JobState.PENDING, JobState.PENDING]


def test_a_synchronous_call_in_async_code_is_told_the_asynchronous_one(broker_database):
    handle = add.enqueue(1)

    async def forget_to_await():
        with pytest.raises(SynchronousOnlyOperation, match=r"await aenqueue"):
            add.enqueue(1)
        with pytest.raises(SynchronousOnlyOperation, match=r"await handle\.astatus"):
            handle.status()

    asyncio.run(forget_to_await())


def test_an_async_view_enqueues(observer, settings):
    settings.ROOT_URLCONF = __name__

    answer = Client().get("/async")

    assert observer.job_ids() == [int(answer.content)]


class InATestCase(TestCase):
    """Django's own TestCase, as users write it."""

    def test_a_job_is_there_within_the_test(self):
        assert add.enqueue(1).status() is JobState.PENDING

    def test_hooks_are_captured_and_may_be_run(self):
        with self.captureOnCommitCallbacks(execute=True) as callbacks:
            add.enqueue(1)

        assert len(callbacks) == 1


def test_the_data_error_is_the_servers(observer):
    with transaction.atomic(), pytest.raises(DataError) as raised:
        enqueue_job(CallerGateway(), *poisoned_job())

    assert isinstance(raised.value.__cause__, psycopg.DataError)
