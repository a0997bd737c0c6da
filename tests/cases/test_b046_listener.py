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
    rarely = {"POLL_MIN_SECONDS": 30, "POLL_MAX_SECONDS": 30}
    settings.PGBROKER = rarely
    noop = declare("tests.noop")(lambda: 1)
    start(concurrency=1)
    first = noop.enqueue()
    wait_until(lambda: first.status() is JobState.COMPLETED, "it works")

    for _ in range(2):
        settings.PGBROKER = {**rarely, "LISTEN": False}
        unheard = noop.enqueue()
        settings.PGBROKER = rarely
        wait_until(lambda: rows.one(LISTENER), "it listens")
        rows.run(f"select pg_terminate_backend(pid) from ({LISTENER}) as victim")
        wait_until(lambda handle=unheard: handle.status() is JobState.COMPLETED, "it looks when it is back")
        later = noop.enqueue()
        wait_until(lambda handle=later: handle.status() is JobState.COMPLETED, "it hears")
        assert waited(unheard) < 2
        assert waited(later) < 2
