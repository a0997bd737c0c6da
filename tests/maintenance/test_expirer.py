"""Overdue jobs end as expired, and a job is either claimed or expired, never both."""

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.maintenance.expirer import Expirer
from django_pgbroker.store.claim import claim_jobs
from django_pgbroker.store.expire import expire_jobs
from tests.maintenance.connections import stopped_in_mid_statement


def claim(gateway, queue_id, job_type_id):
    return [
        job.id
        for job in claim_jobs(
            gateway, queue_id=queue_id, job_type_ids=[job_type_id], batch=10, lease_seconds=60, worker_id=1
        )
    ]


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.SCHEDULED, JobState.BLOCKED, JobState.PARKED])
def test_an_overdue_job_is_archived_as_expired_with_its_payload_and_a_reason(gateway, rows, state):
    job_id = rows.job(rows.queue(), state, expires_in=-1)

    assert expire_jobs(gateway, batch=10) == [job_id]

    assert rows.state_of(job_id) is JobState.EXPIRED
    archived = rows.gateway.connection.execute(
        "select arguments, headers, version, correlation_id, created_by, reason, finished_at is not null"
        " from pgbroker.archived_job where id = %s",
        [job_id],
    ).fetchone()
    assert archived == (
        {"order_id": 7}, {"trace": "abc"}, 2, "c-1", "alice", "not started before it expired", True,
    )  # fmt: skip
    assert rows.one("select count(*) from pgbroker.job_payload") == 0


def test_a_retry_that_comes_too_late_says_so(gateway, rows):
    job_id = rows.job(rows.queue(), JobState.SCHEDULED, expires_in=-1, attempt=1)
    expire_jobs(gateway, batch=10)
    assert rows.one("select reason from pgbroker.archived_job where id = %s", job_id) == "not retried before it expired"


def test_running_jobs_and_jobs_with_time_left_or_no_expiry_stay(gateway, rows):
    queue = rows.queue()
    running = rows.job(queue, JobState.RUNNING, expires_in=-1)
    in_time = rows.job(queue, expires_in=3600)
    unbounded = rows.job(queue)

    assert expire_jobs(gateway, batch=10) == []

    assert [rows.state_of(job) for job in (running, in_time, unbounded)] == [
        JobState.RUNNING, JobState.PENDING, JobState.PENDING,
    ]  # fmt: skip


def test_a_paused_queue_does_not_keep_a_job_from_expiring(gateway, rows):
    queue = rows.queue()
    rows.run("update pgbroker.queue set paused_at = now() where id = %s", queue)
    job_id = rows.job(queue, expires_in=-1)
    expire_jobs(gateway, batch=10)
    assert rows.state_of(job_id) is JobState.EXPIRED


def test_a_full_batch_asks_to_come_again_and_the_last_one_does_not(gateway, rows):
    for _ in range(5):
        rows.job(rows.queue(), expires_in=-1)
    swept = [Expirer().tick(gateway, batch=2) for _ in range(3)]
    assert [(each.moved, each.has_more) for each in swept] == [(2, True), (2, True), (1, False)]


def test_the_longest_overdue_goes_first(gateway, rows):
    queue = rows.queue()
    later, sooner = rows.job(queue, expires_in=-1), rows.job(queue, expires_in=-100)
    assert expire_jobs(gateway, batch=1) == [sooner]
    assert expire_jobs(gateway, batch=1) == [later]


def test_a_job_without_payload_is_archived_and_not_lost(gateway, rows):
    job_id = rows.job(rows.queue(), expires_in=-1)
    rows.run("delete from pgbroker.job_payload")
    expire_jobs(gateway, batch=10)
    assert rows.state_of(job_id) is JobState.EXPIRED


def test_a_job_that_a_claim_holds_is_not_expired_while_the_claim_is_open_nor_after_it(gateway, rival, rows):
    queue, job_type = rows.queue(), rows.job_type()
    job_id = rows.job(queue, expires_in=3600)
    with rival.transaction():
        assert claim(rival, queue, job_type) == [job_id]
        rows_see_it_overdue = "select count(*) from pgbroker.job where id = %s and state = 0"
        assert rows.one(rows_see_it_overdue, job_id) == 1
        # the claim has read the row in time; now it is overdue for everybody who comes later
        rival.connection.execute("update pgbroker.job set expires_at = now() - interval '1 s' where id = %s", [job_id])
        assert expire_jobs(gateway, batch=10) == []
    assert expire_jobs(gateway, batch=10) == []
    assert rows.state_of(job_id) is JobState.RUNNING


def test_a_job_that_left_its_state_after_the_snapshot_of_the_sweep_is_not_expired(gateway, rows):
    claimed, postponed = (rows.job(rows.queue(), expires_in=-1) for _ in range(2))
    with stopped_in_mid_statement(rows, lambda: expire_jobs(gateway, batch=10)) as answers:
        rows.run("update pgbroker.job set state = 1, lease_token = 1, lease_expires_at = now() where id = %s", claimed)
        rows.run("update pgbroker.job set expires_at = now() + interval '1 hour' where id = %s", postponed)
    assert answers == [[]]
    assert rows.state_of(claimed) is JobState.RUNNING
    assert rows.state_of(postponed) is JobState.PENDING


def test_a_row_that_a_claim_locked_is_skipped_and_not_waited_for(gateway, rival, rows):
    job_id = rows.job(rows.queue(), expires_in=-1)
    with rival.transaction():
        rival.connection.execute("select 1 from pgbroker.job where id = %s for no key update", [job_id])
        gateway.connection.execute("set lock_timeout = '100ms'")
        assert expire_jobs(gateway, batch=10) == []
    assert expire_jobs(gateway, batch=10) == [job_id]


def test_a_job_that_is_being_expired_is_never_claimed(gateway, rival, rows):
    queue, job_type = rows.queue(), rows.job_type()
    job_id = rows.job(queue, expires_in=-1)
    with gateway.transaction():
        assert expire_jobs(gateway, batch=10) == [job_id]
        assert claim(rival, queue, job_type) == []
    assert claim(rival, queue, job_type) == []
    assert rows.state_of(job_id) is JobState.EXPIRED


def test_an_overdue_job_is_never_claimed_even_when_no_expirer_has_run(rival, rows):
    queue, job_type = rows.queue(), rows.job_type()
    rows.job(queue, expires_in=-1)
    assert claim(rival, queue, job_type) == []


def test_a_reaper_that_dies_in_mid_sweep_has_done_nothing(gateway, rows):
    job_id = rows.job(rows.queue(), expires_in=-1)
    gateway.connection.execute("begin")
    assert expire_jobs(gateway, batch=10) == [job_id]

    rows.run("select pg_terminate_backend(%s::int, 5000)", gateway.connection.info.backend_pid)

    assert rows.state_of(job_id) is JobState.PENDING
    assert rows.one("select count(*) from pgbroker.archived_job") == 0
    assert rows.one("select count(*) from pgbroker.job_payload") == 1
