"""B066 to B069: results that have no JSON form, and arguments that have none, in whole workers and on the way in."""

import datetime
import decimal
import uuid

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from django_pgbroker import InvalidPayload, ResultNotStored, enqueue
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution, Job

#: A value, and where in it the trouble lies.
ODD = {
    "B065 NUL": ("x\x00y", ""),
    "B065 NUL in a list": ([1, {"deep": ["x\x00y"]}], "[1].deep[0]"),
    "B065 NUL in a key": ({"a\x00": 1}, ""),
    "B067 NaN": (float("nan"), ""),
    "B067 -inf deep down": ({"x": [float("-inf")]}, ".x[0]"),
    "B068 a number as key": ({1: "a"}, ""),
    "B068 None as key": ({None: 1}, ""),
    "B068 True as key": ({True: 1}, ""),
    "B069 aware datetime": (datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC), ""),
    "B069 naive datetime": (datetime.datetime(2030, 1, 1), ""),
    "B069 date": (datetime.date(2030, 1, 1), ""),
    "B069 timedelta": (datetime.timedelta(1), ""),
    "B069 UUID": (uuid.UUID(int=7), ""),
    "B069 Decimal": (decimal.Decimal("1.10"), ""),
    "B069 set": ({1, 2}, ""),
    "B069 a model": (Group(name="x"), ""),
}


@pytest.mark.parametrize("case", ODD)
def test_b065_b067_b068_b069_an_argument_without_json_form_is_refused_before_any_sql_with_its_path(
    declare, broker_database, case
):
    value, path = ODD[case]
    declare("tests.take")(lambda given: None)
    with transaction.atomic():
        with CaptureQueriesContext(connection) as captured, pytest.raises(InvalidPayload) as raised:
            enqueue("tests.take", {"given": value})
        Group.objects.create(name="after")
    assert len(captured) == 0
    assert f"given{path}" in str(raised.value)
    assert (Group.objects.count(), Job.objects.count()) == (1, 0)


def test_b066_b067_b068_b069_a_result_without_json_form_leaves_the_job_completed_and_says_why(declare, run_until_empty):
    values = iter(ODD.values())
    handles = {case: declare(f"tests.answer{n}")(lambda: next(values)[0]).enqueue() for n, case in enumerate(ODD)}
    after = declare("tests.after")(lambda: "fine").enqueue()

    assert run_until_empty(concurrency=1) == 0

    for case, handle in handles.items():
        done = ArchivedJob.objects.get(pk=handle.id)
        assert (done.state, done.result) == (JobState.COMPLETED, None), case
        assert done.reason.startswith("result not stored: "), case
        with pytest.raises(ResultNotStored):
            handle.result()
    assert after.result() == "fine"
    assert set(Execution.objects.values_list("attempt", "outcome")) == {(1, Outcome.COMPLETED)}


def test_b066_nul_in_an_error_is_stored_in_a_form_that_can_be_read(declare, run_until_empty):
    def fail():
        raise ValueError("a\x00b")

    handle = declare("tests.fail", max_attempts=1)(fail).enqueue()
    run_until_empty()
    dead = ArchivedJob.objects.get(pk=handle.id)
    assert (dead.state, dead.error_message) == (JobState.DEAD, r"a\x00b")
