"""Jobs of a type that no worker knows stand aside until one does."""

import logging

from django_pgbroker.domain.states import JobState, ParkedReason
from django_pgbroker.maintenance.unknown_types import UnknownTypes
from django_pgbroker.registry import JobType, registry
from django_pgbroker.store.unknown_types import park_unknown_jobs
from tests.maintenance.connections import stopped_in_mid_statement


def test_a_pending_job_of_an_unknown_type_is_parked_with_its_reason_and_known_ones_stay(gateway, rows):
    queue, known, unknown = rows.queue(), rows.job_type("a.known"), rows.job_type("a.unknown")
    rows.worker(knows=[known])
    stays, goes = rows.job(queue, job_type_id=known), rows.job(queue, job_type_id=unknown)

    assert UnknownTypes().tick(gateway, batch=10).moved == 1

    assert rows.state_of(stays) is JobState.PENDING
    assert rows.state_of(goes) is JobState.PARKED
    assert rows.one("select parked_reason from pgbroker.job where id = %s", goes) == ParkedReason.UNKNOWN_TYPE


def test_nothing_is_parked_while_no_worker_lives(gateway, rows):
    job = rows.job(rows.queue())
    rows.worker(knows=[], stopped_for=3600)
    assert UnknownTypes().tick(gateway, batch=10).moved == 0
    assert rows.state_of(job) is JobState.PENDING


def test_a_restart_of_the_workers_that_know_a_type_parks_nothing_for_a_minute(gateway, rows):
    job_type = rows.job_type()
    job = rows.job(rows.queue(), job_type_id=job_type)
    rows.worker(knows=[])
    stopped = rows.worker(knows=[job_type], stopped_for=50)
    assert UnknownTypes().tick(gateway, batch=10).moved == 0

    rows.run("update pgbroker.worker set stopped_at = now() - interval '61 s' where id = %s", stopped)

    assert UnknownTypes().tick(gateway, batch=10).moved == 1
    assert rows.state_of(job) is JobState.PARKED


def test_a_type_that_the_code_has_is_not_parked_because_every_worker_leaves_it_out(gateway, rows):
    job = rows.job(rows.queue(), job_type_id=rows.job_type("tests.left_out"))
    rows.worker(knows=[])
    declared = registry.register(JobType("tests.left_out", lambda: 1))
    try:
        assert UnknownTypes().tick(gateway, batch=10).moved == 0
    finally:
        registry.forget(declared.name)
    assert rows.state_of(job) is JobState.PENDING
    assert UnknownTypes().tick(gateway, batch=10).moved == 1


def test_a_worker_that_knows_the_type_wakes_its_jobs_with_their_place_and_their_queue_is_named(gateway, rows):
    queue, job_type = rows.queue("letters"), rows.job_type()
    job = rows.job(queue, job_type_id=job_type)
    rows.worker(knows=[])
    UnknownTypes().tick(gateway, batch=10)
    order = rows.one("select claim_order from pgbroker.job")

    rows.worker(knows=[job_type])
    swept = UnknownTypes().tick(gateway, batch=10)

    assert rows.state_of(job) is JobState.PENDING
    assert swept.woken_queues == {"letters"}
    assert rows.gateway.connection.execute(
        "select claim_order, parked_on, parked_reason from pgbroker.job"
    ).fetchone() == (order, None, None)


def test_jobs_that_are_parked_for_another_reason_are_not_woken(gateway, rows):
    job_type = rows.job_type()
    job = rows.job(rows.queue(), JobState.PARKED, job_type_id=job_type)
    rows.run("update pgbroker.job set parked_on = %s, parked_reason = %s", job_type, ParkedReason.LIMIT)
    rows.worker(knows=[job_type])
    assert UnknownTypes().tick(gateway, batch=10).moved == 0
    assert rows.state_of(job) is JobState.PARKED


def test_unknown_jobs_are_found_behind_a_full_batch_of_themselves(gateway, rows):
    queue, unknown = rows.queue(), rows.job_type("a.unknown")
    rows.worker(knows=[])
    for _ in range(5):
        rows.job(queue, job_type_id=unknown)
    swept = [UnknownTypes().tick(gateway, batch=2) for _ in range(3)]
    assert [(each.moved, each.has_more) for each in swept] == [(2, True), (2, True), (1, False)]


def test_a_job_that_a_claim_holds_is_not_parked_and_not_waited_for(gateway, rival, rows):
    job = rows.job(rows.queue())
    rows.worker(knows=[])
    gateway.connection.execute("set lock_timeout = '100ms'")
    with rival.transaction():
        rival.connection.execute(
            "update pgbroker.job set state = 1, lease_token = 1, lease_expires_at = now() where id = %s", [job]
        )
        assert UnknownTypes().tick(gateway, batch=10).moved == 0
    assert UnknownTypes().tick(gateway, batch=10).moved == 0
    assert rows.state_of(job) is JobState.RUNNING


def test_a_job_that_was_claimed_after_the_snapshot_of_the_parking_keeps_running(gateway, rows):
    job = rows.job(rows.queue())
    rows.worker(knows=[])
    rows.worker(stopped_for=3600)  # the statement asks the clock about stopped workers only
    with stopped_in_mid_statement(rows, lambda: park_unknown_jobs(gateway, batch=10)) as answers:
        rows.run("update pgbroker.job set state = 1, lease_token = 1, lease_expires_at = now() where id = %s", job)
    assert answers == [[]]
    assert rows.state_of(job) is JobState.RUNNING


def test_people_are_told_the_type_and_what_to_do(gateway, rows, caplog):
    rows.worker(knows=[])
    rows.job(rows.queue(), job_type_id=rows.job_type("a.unknown"))
    swept = UnknownTypes().tick(gateway, batch=10)
    with caplog.at_level(logging.WARNING, "django_pgbroker"):
        for report in swept.reports:
            report()
    assert caplog.records[0].fields == {"job_type": "a.unknown", "jobs": 1}
    assert "start a worker" in caplog.text
