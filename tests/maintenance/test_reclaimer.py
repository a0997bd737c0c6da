"""Jobs of dead workers come back."""

import logging

from django_pgbroker.domain.states import JobState
from django_pgbroker.maintenance.reclaimer import Reclaimer


def test_a_job_whose_lease_lapsed_comes_back_and_one_whose_lease_stands_does_not(gateway, rows, caplog):
    queue = rows.queue()
    lapsed = rows.job(queue, JobState.RUNNING, lease_in=-1, attempt=1)
    held = rows.job(queue, JobState.RUNNING, lease_in=60, attempt=1)

    swept = Reclaimer().tick(gateway, batch=10)

    assert swept.moved == 1
    assert rows.state_of(lapsed) in {JobState.PENDING, JobState.SCHEDULED}
    assert rows.state_of(held) is JobState.RUNNING
    with caplog.at_level(logging.WARNING, "django_pgbroker"):
        for report in swept.reports:
            report()
    (record,) = caplog.records
    assert record.event == "lease.lapsed"
    assert record.fields["job"] == lapsed


def test_a_job_whose_attempts_are_spent_is_dead(gateway, rows):
    job = rows.job(rows.queue(), JobState.RUNNING, lease_in=-1, attempt=3, max_attempts=3)
    Reclaimer().tick(gateway, batch=10)
    assert rows.state_of(job) is JobState.DEAD


def test_the_interval_is_a_setting(settings):
    settings.PGBROKER = {"RECLAIM_INTERVAL_SECONDS": 2}
    assert Reclaimer().interval_seconds == 2
