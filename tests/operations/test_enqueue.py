"""What enqueue stores, and what it refuses before any SQL."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_pgbroker import (
    ConfigurationError,
    InvalidArguments,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    JobState,
    PayloadTooLarge,
    UnknownJobType,
    UnknownQueue,
    enqueue,
)
from django_pgbroker.models import Job, JobPayload
from operations.jobs import add, note

pytestmark = pytest.mark.django_db

FAR = datetime(2090, 6, 1, 12, tzinfo=UTC)


def stored(handle):
    return Job.objects.select_related("queue", "job_type", "tenant").get(id=handle.id)


def test_a_job_gets_the_defaults_of_the_settings():
    job = stored(enqueue("tests.add", {"left": 1}))

    assert (job.queue.name, job.job_type.name, job.tenant.name) == ("default", "tests.add", "default")
    assert (job.state, job.priority, job.attempt, job.max_attempts) == (JobState.PENDING, 0, 0, 3)
    assert job.timeout_seconds == 300
    assert job.deadline_at is None
    assert job.available_at == job.created_at == job.claim_order


def test_a_job_gets_the_defaults_of_its_type():
    job = stored(enqueue("tests.note", {"text": "hello"}))

    assert (job.queue.name, job.priority, job.max_attempts, job.timeout_seconds) == ("notes", -50, 7, 60)
    assert JobPayload.objects.get(job=job).version == 3


def test_the_call_is_stronger_than_the_type():
    job = stored(
        note.using(queue="other", priority=9, max_attempts=2, timeout=timedelta(minutes=2), tenant="acme corp").enqueue(
            "a"
        )
    )

    assert (job.queue.name, job.priority, job.max_attempts, job.timeout_seconds) == ("other", 9, 2, 120)
    assert job.tenant.name == "acme corp"


def test_the_payload_is_stored_as_it_was_given():
    handle = enqueue(add, {"left": 2**70, "right": 5}, correlation_id="order-42", created_by="user:7")

    payload = JobPayload.objects.get(job_id=handle.id)
    assert payload.arguments == {"left": 2**70, "right": 5}
    assert (payload.correlation_id, payload.created_by) == ("order-42", "user:7")


def test_a_float_that_jsonb_would_turn_into_an_integer_stays_a_float():
    handle = enqueue("tests.any", {"values": [1e22, 1e23, 1.7976931348623157e308, 5e-324, 1.0, 10**4000]})

    values = JobPayload.objects.get(job_id=handle.id).arguments["values"]
    assert values == [1e22, 1e23, 1.7976931348623157e308, 5e-324, 1.0, 10**4000]
    assert [type(value) for value in values] == [float] * 5 + [int]


def test_a_former_name_is_stored_under_the_present_one():
    assert stored(enqueue("tests.old_note", {"text": "a"})).job_type.name == "tests.note"


def test_routes_send_a_type_elsewhere_by_name_before_pattern(settings):
    settings.PGBROKER = {"ROUTES": {"tests.*": "tests", "tests.note": "exact"}}

    assert stored(note.enqueue("a")).queue.name == "exact"
    assert stored(add.enqueue(1)).queue.name == "tests"
    assert stored(add.using(queue="asked").enqueue(1)).queue.name == "asked"


def test_one_job_is_one_round_trip_of_the_caller():
    add.enqueue(1)

    with CaptureQueriesContext(
        connection,
    ) as captured:
        add.enqueue(2)

    assert len(captured) == 1


def test_a_delayed_job_is_scheduled_by_the_clock_of_the_database():
    job = stored(add.using(delay=timedelta(hours=1)).enqueue(1))

    assert job.state == JobState.SCHEDULED
    assert job.available_at - job.created_at == timedelta(hours=1)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_a_run_time_keeps_its_instant_whatever_its_zone(zone):
    assert stored(add.using(run_at=FAR.astimezone(ZoneInfo(zone))).enqueue(1)).available_at == FAR


def test_a_run_time_in_the_past_means_now():
    job = stored(add.using(run_at=datetime(1, 1, 1, tzinfo=UTC)).enqueue(1))

    assert job.state == JobState.PENDING
    assert job.available_at == job.created_at


def test_priority_moves_a_job_forward_by_its_ageing_in_the_order_of_claims(settings):
    settings.PGBROKER = {"QUEUES": {"default": {}, "quick": {"ageing_seconds": 10}}}

    urgent = stored(add.using(queue="quick", priority="user").enqueue(1))
    late = stored(add.using(queue="quick", priority=-100).enqueue(1))

    assert urgent.available_at - urgent.claim_order == timedelta(seconds=500)
    assert late.claim_order - late.available_at == timedelta(seconds=1000)


def test_the_widest_priority_with_the_longest_ageing_and_the_furthest_time_is_still_a_date(settings):
    settings.PGBROKER = {"AGEING_SECONDS": 1_000_000}

    job = stored(add.using(queue="patient", priority=-100, delay=timedelta(days=36_500)).enqueue(1))

    assert job.claim_order - job.available_at == timedelta(seconds=100_000_000)


def test_expiry_and_deadline_count_from_now_or_are_times():
    job = stored(add.using(expires=timedelta(minutes=5), deadline=timedelta(hours=1)).enqueue(1))
    timed = stored(add.using(deadline=FAR, expires=FAR + timedelta(days=1)).enqueue(1))

    assert job.expires_at - job.created_at == timedelta(minutes=5)
    assert job.deadline_at - job.created_at == timedelta(hours=1)
    assert timed.deadline_at == FAR


def test_a_deadline_bounds_the_start_too():
    assert stored(add.using(deadline=FAR, expires=FAR + timedelta(days=1)).enqueue(1)).expires_at == FAR


def test_a_job_without_expiry_never_expires():
    handle = add.enqueue(1)

    with connection.cursor() as cursor:
        cursor.execute("select expires_at = 'infinity' from pgbroker.job where id = %s", [handle.id])
        assert cursor.fetchone() == (True,)


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ({}, {}, InvalidArguments),
        ({"left": 1, "middle": 2}, {}, InvalidArguments),
        ({"left": "1"}, {}, InvalidArguments),
        ({1: 2}, {}, InvalidArguments),
        ([1], {}, InvalidPayload),
        ({"left": 1, "right": object()}, {}, InvalidPayload),
        ({"left": 1}, {"queue": "two words"}, InvalidName),
        ({"left": 1}, {"queue": "x; DROP TABLE y--"}, InvalidName),
        ({"left": 1}, {"tenant": "a\x00"}, InvalidName),
        ({"left": 1}, {"priority": 101}, InvalidOption),
        ({"left": 1}, {"priority": "urgent"}, InvalidOption),
        ({"left": 1}, {"max_attempts": 0}, InvalidOption),
        ({"left": 1}, {"timeout": 0}, InvalidOption),
        ({"left": 1}, {"timeout": timedelta(days=31)}, InvalidOption),
        ({"left": 1}, {"timeout_seconds": 5}, InvalidOption),
        ({"left": 1}, {"right": 5}, InvalidOption),
        ({"left": 1}, {"delay": -1}, InvalidOption),
        ({"left": 1}, {"delay": timedelta(days=40_000)}, InvalidOption),
        ({"left": 1}, {"run_at": datetime(2030, 1, 1)}, InvalidOption),
        ({"left": 1}, {"delay": 1, "run_at": FAR}, InvalidOption),
        ({"left": 1}, {"correlation_id": "a\x00"}, InvalidOption),
        ({"left": 1}, {"created_by": ""}, InvalidOption),
    ],
)
def test_what_cannot_work_is_refused_before_any_sql(arguments, options, error):
    with CaptureQueriesContext(connection) as captured, pytest.raises(error):
        enqueue("tests.add", arguments, **options)

    assert len(captured) == 0


def test_an_unknown_job_type_is_refused_with_the_closest_name():
    with (
        CaptureQueriesContext(connection) as captured,
        pytest.raises(UnknownJobType, match=r"Did you mean 'tests\.note'"),
    ):
        enqueue("tests.noet", {"text": "a"})

    assert len(captured) == 0


def test_an_undeclared_queue_is_refused_where_queues_are_declared(settings):
    settings.PGBROKER = {"QUEUES": ["default", "notes"]}

    with CaptureQueriesContext(connection) as captured, pytest.raises(UnknownQueue, match="Did you mean 'notes'"):
        note.using(queue="note").enqueue("a")

    assert len(captured) == 0


def test_a_payload_beyond_the_limit_is_refused_and_one_within_is_stored(settings):
    settings.PGBROKER = {"PAYLOAD_LIMIT_BYTES": 300}

    assert note.enqueue("a" * 280)
    with pytest.raises(PayloadTooLarge):
        note.enqueue("a" * 300)


@pytest.mark.parametrize("tenant", ["a'b", 'a"b', "x; DROP TABLE y--", "%s", "%(x)s", "two words", "🚀", "\\"])
def test_a_tenant_works_exactly_as_it_is_named(tenant):
    assert stored(add.using(tenant=tenant).enqueue(1)).tenant.name == tenant


def test_text_with_percent_signs_and_quotes_is_data():
    handle = note.enqueue("%s %(queue)s '; drop table pgbroker.job; --")

    assert JobPayload.objects.get(job_id=handle.id).arguments == {"text": "%s %(queue)s '; drop table pgbroker.job; --"}


def test_a_database_that_cannot_hold_jobs_is_named(sqlite_alias):
    with pytest.raises(ConfigurationError, match="is sqlite; jobs are stored in PostgreSQL only"):
        enqueue("tests.add", {"left": 1}, using=sqlite_alias)
    with pytest.raises(ConfigurationError, match="Did you mean 'default'"):
        enqueue("tests.add", {"left": 1}, using="defalt")


def test_ids_beyond_thirty_two_bits_are_ordinary():
    with connection.cursor() as cursor:
        cursor.execute("select setval(pg_get_serial_sequence('pgbroker.job', 'id'), 2147483646)")

    handles = [add.enqueue(number) for number in range(3)]

    assert [handle.id for handle in handles] == [2147483647, 2147483648, 2147483649]
    assert {handle.status() for handle in handles} == {JobState.PENDING}
