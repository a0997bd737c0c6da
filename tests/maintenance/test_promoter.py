"""Scheduled jobs of all queues become pending when their time has come."""

from django_pgbroker.domain.states import JobState
from django_pgbroker.maintenance.promoter import Promoter
from django_pgbroker.store.due_queues import find_due_queues


def test_due_jobs_of_every_queue_become_pending_and_the_others_wait(gateway, rows):
    first, second = rows.queue("first"), rows.queue("second")
    due = [rows.job(queue, JobState.SCHEDULED, due_in=-1) for queue in (first, second)]
    later = rows.job(first, JobState.SCHEDULED, due_in=3600)

    swept = Promoter().tick(gateway, batch=10)

    assert swept.moved == 2
    assert swept.woken_queues == {"first", "second"}
    assert {rows.state_of(job) for job in due} == {JobState.PENDING}
    assert rows.state_of(later) is JobState.SCHEDULED


def test_a_queue_with_nothing_due_is_not_woken(gateway, rows):
    rows.job(rows.queue("idle"), JobState.SCHEDULED, due_in=3600)
    rows.job(rows.queue("busy"))
    assert find_due_queues(gateway) == []
    swept = Promoter().tick(gateway, batch=10)
    assert (swept.moved, swept.has_more, swept.woken_queues) == (0, False, frozenset())


def test_a_full_queue_leaves_the_others_their_share(gateway, rows):
    full, small = rows.queue("full"), rows.queue("small")
    for _ in range(20):
        rows.job(full, JobState.SCHEDULED, due_in=-100)
    job = rows.job(small, JobState.SCHEDULED, due_in=-1)

    swept = Promoter().tick(gateway, batch=10)

    assert swept.has_more
    assert swept.moved <= 10
    assert rows.state_of(job) is JobState.PENDING
