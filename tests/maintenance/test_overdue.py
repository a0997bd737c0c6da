"""Running jobs that nobody stops are found whoever holds them."""

import logging

import pytest

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.maintenance.overdue import Overdue

MARGIN_SECONDS = 10 + 30  # of the default settings: the grace, and what a worker may need beyond it


@pytest.fixture
def run_since(rows):
    def run_since(seconds, timeout=60, **columns):
        job = rows.job(rows.queue(), JobState.RUNNING, lease_in=600, attempt=1, **columns)
        rows.run(
            "update pgbroker.job set timeout_seconds = %s, started_at = pgbroker.clock() - %s * interval '1 second' "
            "where id = %s",
            timeout,
            seconds,
            job,
        )
        return job

    return run_since


def test_a_job_long_beyond_its_time_out_is_taken_back_though_its_lease_is_kept(gateway, rows, run_since, caplog):
    overdue, in_time = run_since(60 + MARGIN_SECONDS + 5), run_since(60 + MARGIN_SECONDS - 5)
    endless = run_since(10**6, timeout=None)

    swept = Overdue().tick(gateway, batch=10)

    assert swept.moved == 1
    assert rows.state_of(overdue) is JobState.SCHEDULED
    assert rows.state_of(in_time) is rows.state_of(endless) is JobState.RUNNING
    assert rows.one("select outcome from pgbroker.execution where job_id = %s", overdue) == Outcome.TIMED_OUT
    with caplog.at_level(logging.ERROR, "django_pgbroker"):
        for report in swept.reports:
            report()
    (record,) = caplog.records
    assert (record.event, record.fields["job"]) == ("job.overdue", overdue)


def test_its_holder_can_write_nothing_any_more(gateway, rows, run_since):
    job = run_since(10_000)
    token = rows.one("select lease_token from pgbroker.job where id = %s", job)
    Overdue().tick(gateway, batch=10)
    assert rows.one("select count(*) from pgbroker.job where lease_token = %s", token) == 0


def test_the_last_attempt_is_a_dead_letter(gateway, rows, run_since):
    job = run_since(10_000, max_attempts=1)
    Overdue().tick(gateway, batch=10)
    assert rows.state_of(job) is JobState.DEAD
    assert rows.one("select reason from pgbroker.archived_job") == (
        "its time-out had long passed, and its worker did not stop it"
    )


def test_by_policy_it_is_only_told_and_once(gateway, rows, run_since, settings, caplog):
    settings.PGBROKER = {"TAKE_BACK_OVERDUE": False}
    job = run_since(10_000)
    duty = Overdue()
    with caplog.at_level(logging.ERROR, "django_pgbroker"):
        for _ in range(3):
            for report in duty.tick(gateway, batch=10).reports:
                report()
    assert [record.fields["job"] for record in caplog.records] == [job]
    assert rows.state_of(job) is JobState.RUNNING
