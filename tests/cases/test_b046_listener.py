"""B046: only the connection that listens is cut; the worker hears again and does not fall back to polling."""

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, Execution
from tests.maintenance.waiting import wait_until

LISTENER = """
    select pid from pg_stat_activity
    where datname = current_database() and application_name like 'pgbroker listener%%'
"""


def waited(handle):
    """Seconds from the enqueue to the claim."""
    claimed_at = Execution.objects.get(job_id=handle.id).leased_at
    return (claimed_at - ArchivedJob.objects.get(pk=handle.id).created_at).total_seconds()


def test_b046_jobs_start_at_once_after_the_listener_was_cut_although_polls_are_half_a_minute_apart(
    declare, start, rows, settings
):
    settings.PGBROKER = {"POLL_MIN_SECONDS": 30, "POLL_MAX_SECONDS": 30}
    noop = declare("tests.noop")(lambda: 1)
    start(concurrency=1)
    first = noop.enqueue()
    wait_until(lambda: first.status() is JobState.COMPLETED, "it works")

    for _ in range(2):
        cut = rows.one(LISTENER)
        assert rows.one("select pg_terminate_backend(%s::int, 5000)", cut)
        at_once = noop.enqueue()
        wait_until(lambda handle=at_once: handle.status() is JobState.COMPLETED, "it looked when it was back")
        assert rows.one(LISTENER) not in (None, cut)
        later = noop.enqueue()
        wait_until(lambda handle=later: handle.status() is JobState.COMPLETED, "it hears")
        assert waited(at_once) < 2
        assert waited(later) < 2
