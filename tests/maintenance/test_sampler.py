"""The figures in the queue rows."""

from datetime import timedelta

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.store.sampling import sample_queues

FIGURES = "pending_count, scheduled_count, blocked_count, parked_count, running_count"


def figures(rows, queue_id):
    return rows.gateway.connection.execute(f"select {FIGURES} from pgbroker.queue where id = %s", [queue_id]).fetchone()


def sample_with_bounds(gateway, bound, head=1000):
    params = {"batch": 10, "max_age_seconds": 0.0, "bound": bound, "head": head}
    return gateway.execute("sample_queues", params)


def age_of_oldest(rows, queue_id):
    return rows.one("select clock_timestamp() - oldest_pending_at from pgbroker.queue where id = %s", queue_id)


def test_each_state_is_counted_under_its_own_queue(gateway, rows):
    first, second, empty = rows.queue("first"), rows.queue("second"), rows.queue("empty")
    counts = {JobState.PENDING: 1, JobState.SCHEDULED: 2, JobState.BLOCKED: 3, JobState.PARKED: 4, JobState.RUNNING: 5}
    for state, count in counts.items():
        for _ in range(count):
            rows.job(first, state)
    rows.job(second, JobState.RUNNING)

    assert sample_queues(gateway, batch=10, max_age_seconds=0) == 3

    assert figures(rows, first) == (1, 2, 3, 4, 5)
    assert figures(rows, second) == (0, 0, 0, 0, 1)
    assert figures(rows, empty) == (0, 0, 0, 0, 0)


def test_the_oldest_pending_time_is_that_of_the_row_that_waits_longest_whatever_its_priority(gateway, rows):
    queue = rows.queue()
    rows.job(queue, due_in=-600, priority=-50)
    rows.job(queue, due_in=-10, priority=50)
    rows.job(queue, JobState.SCHEDULED, due_in=-9000)
    sample_queues(gateway, batch=10, max_age_seconds=0)
    assert timedelta(seconds=600) <= age_of_oldest(rows, queue) < timedelta(seconds=660)


def test_an_empty_queue_has_no_oldest_pending_time(gateway, rows):
    queue = rows.queue()
    rows.run("update pgbroker.queue set oldest_pending_at = now() where id = %s", queue)
    sample_queues(gateway, batch=10, max_age_seconds=0)
    assert rows.one("select oldest_pending_at from pgbroker.queue where id = %s", queue) is None


@pytest.mark.parametrize("state", [state for state in JobState if not state.is_finished])
def test_counting_stops_at_the_bound(gateway, rows, state):
    queue = rows.queue()
    for _ in range(7):
        rows.job(queue, state)
    sample_with_bounds(gateway, bound=3)
    assert max(figures(rows, queue)) == 3


def test_a_fresh_sample_is_not_taken_again(gateway, rows):
    queue = rows.queue()
    assert sample_queues(gateway, batch=10, max_age_seconds=4) == 1
    rows.job(queue)
    assert sample_queues(gateway, batch=10, max_age_seconds=4) == 0
    assert figures(rows, queue)[0] == 0
    rows.run("update pgbroker.queue set sampled_at = now() - interval '5 s'")
    assert sample_queues(gateway, batch=10, max_age_seconds=4) == 1
    assert figures(rows, queue)[0] == 1


def test_a_queue_that_an_operator_holds_is_skipped_and_not_waited_for(gateway, rival, rows):
    held, free = rows.queue("held"), rows.queue("free")
    rows.job(held)
    rows.job(free)
    gateway.connection.execute("set lock_timeout = '100ms'")
    with rival.transaction():
        rival.connection.execute("update pgbroker.queue set paused_at = now() where id = %s", [held])
        assert sample_queues(gateway, batch=10, max_age_seconds=0) == 1
    assert figures(rows, held)[0] is None
    assert figures(rows, free)[0] == 1
