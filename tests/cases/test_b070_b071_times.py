"""B070: waits that no date can hold. B071: run times in the zones of the caller, of the process and of Django."""

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from django_pgbroker import Exponential, InvalidOption
from django_pgbroker.domain.backoff import LONGEST_DELAY_SECONDS
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import Execution, Job
from tests.maintenance.waiting import wait_until


class Endless:
    """A policy of the host's own, without a bound."""

    def delay_seconds(self, attempt, random):
        return 5.0 ** min(attempt, 400)


@pytest.mark.parametrize("attempt", [16, 50, 999, 2_000])
@pytest.mark.parametrize(
    "policy", [Exponential(5, factor=5, cap_seconds=LONGEST_DELAY_SECONDS, jitter=False), Endless()]
)
def test_b070_after_many_retries_the_wait_is_the_longest_one_and_the_job_is_still_there(
    declare, start, rows, attempt, policy
):
    def fail():
        raise ValueError("again")

    handle = declare("tests.fail", max_attempts=1000, retry=policy)(fail).enqueue()
    rows.run("alter table pgbroker.job drop constraint job_max_attempts_check")
    try:
        rows.run("update pgbroker.job set attempt = %s, max_attempts = 3000", attempt - 1)
        start(concurrency=1)
        wait_until(lambda: handle.status() is JobState.SCHEDULED, "it waits for its next attempt")
        job = Job.objects.get(pk=handle.id)
        assert job.attempt == attempt
        assert timedelta(days=364) < job.available_at - timezone.now() <= timedelta(days=366)
    finally:
        rows.run("delete from pgbroker.job")
        rows.run(
            "alter table pgbroker.job add constraint job_max_attempts_check check (max_attempts between 1 and 1000)"
        )


@pytest.fixture
def elsewhere(settings, monkeypatch):
    """Django thinks that it is in Los Angeles, the process that it is in Tokyo."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    settings.TIME_ZONE = "America/Los_Angeles"
    yield
    monkeypatch.undo()
    time.tzset()


def test_b071_one_instant_is_one_run_time_in_whatever_zone_it_is_given(elsewhere, declare, run_until_empty):
    noop = declare("tests.noop")(lambda: 1)
    at = datetime.now(UTC) + timedelta(seconds=1)
    zones = ["UTC", "Asia/Tokyo", "America/Los_Angeles"]
    for zone in zones:
        noop.using(run_at=at.astimezone(ZoneInfo(zone))).enqueue()
    assert set(Job.objects.values_list("available_at", flat=True)) == {at}

    run_until_empty(concurrency=3)

    claimed = Execution.objects.values_list("leased_at", flat=True)
    assert len(claimed) == 3
    assert min(claimed) >= at
    assert max(claimed) - at < timedelta(seconds=3)


@pytest.mark.parametrize(
    "naive",
    [
        datetime(2030, 1, 1, 12),
        datetime(2030, 3, 10, 2, 30),  # does not exist in Los Angeles
        datetime(2030, 11, 3, 1, 30, fold=1),  # exists twice there
    ],
)
def test_b071_a_time_without_a_zone_is_refused_rather_than_guessed(elsewhere, declare, broker_database, naive):
    noop = declare("tests.noop")(lambda: 1)
    for option in ("run_at", "expires", "deadline"):
        with pytest.raises(InvalidOption, match=option):
            noop.using(**{option: naive}).enqueue()
    assert not Job.objects.exists()
