"""A handle follows its job from the live table into the history."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections

from django_pgbroker import (
    BrokerDatabaseError,
    JobFailed,
    JobHandle,
    JobNotFinished,
    JobNotFound,
    JobState,
    ResultNotStored,
)
from operations.jobs import add, forget
from tests.factories import ArchivedJobFactory, JobFactory, JobTypeFactory

pytestmark = pytest.mark.django_db


def finish(state=JobState.COMPLETED, result=None, job_type="tests.add", **columns):
    """A finished job in the history; ``result`` is JSON text, as an acknowledge stores it."""
    row = ArchivedJobFactory(state=state, job_type=JobTypeFactory(name=job_type), **columns)
    with connection.cursor() as cursor:
        cursor.execute("update pgbroker.archived_job set result = %s::jsonb where id = %s", [result, row.id])
    return JobHandle(row.id)


@pytest.mark.parametrize(
    ("trait", "state"),
    [({}, JobState.PENDING), ({"running": True}, JobState.RUNNING), ({"due": True}, JobState.SCHEDULED)],
)
def test_a_live_job_has_a_status_and_no_result(trait, state):
    handle = JobHandle(JobFactory(**trait).id)

    assert handle.status() is state
    with pytest.raises(JobNotFinished, match=state.label):
        handle.result()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"total": 3}', {"total": 3}),
        ("[]", []),
        ("0", 0),
        ("false", False),
        ("null", None),
        (None, None),
        ('"a"', "a"),
    ],
)
def test_a_completed_job_has_its_result(text, value):
    handle = finish(result=text)

    assert handle.status() is JobState.COMPLETED
    assert handle.result() == value


@pytest.mark.parametrize("state", [JobState.DEAD, JobState.CANCELLED, JobState.EXPIRED])
def test_a_job_that_failed_says_how_and_why(state):
    handle = finish(state, error_class="builtins.ValueError", error_message="no such order", reason="attempts spent")

    with pytest.raises(JobFailed, match=f"is {state.label}") as raised:
        handle.result()

    assert (raised.value.job_id, raised.value.state) == (handle.id, state.label)
    assert (raised.value.error_class, raised.value.message) == ("builtins.ValueError", "no such order")


def test_a_job_without_an_error_gives_the_reason_of_its_end():
    with pytest.raises(JobFailed, match="is cancelled \\(by an operator\\)"):
        finish(JobState.CANCELLED, reason="by an operator").result()


def test_a_result_that_could_not_be_stored_is_told_apart_from_none():
    with pytest.raises(ResultNotStored, match="not strict JSON"):
        finish(reason="result not stored: not strict JSON").result()


def test_a_type_that_keeps_no_results_is_told_apart_from_none():
    with pytest.raises(ResultNotStored, match="store_result=False"):
        finish(job_type=forget.name).result()


def test_a_type_that_this_process_does_not_know_still_has_results():
    assert finish(job_type="elsewhere.unknown", result="1").result() == 1


@pytest.mark.parametrize("ask", [JobHandle.status, JobHandle.result])
def test_a_job_that_does_not_exist_is_not_found(ask):
    with pytest.raises(JobNotFound, match="never committed, or its history is pruned"):
        ask(JobHandle(4_000_000_000))


def test_async_twins_answer_the_same(broker_database):
    finished, pending = finish(result="5"), add.enqueue(1)

    async def ask():
        answers = await finished.aresult(), await pending.astatus()
        await sync_to_async(connections.close_all, thread_sensitive=True)()
        return answers

    assert asyncio.run(ask()) == (5, JobState.PENDING)


def test_a_database_that_is_not_migrated_says_so(unmigrated_alias):
    with pytest.raises(BrokerDatabaseError, match=r"Run manage\.py migrate"):
        JobHandle(1, unmigrated_alias).status()
