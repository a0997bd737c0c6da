"""Silent workers are marked, live ones are never touched, old rows go."""

import logging

from django_pgbroker.domain.states import JobState
from django_pgbroker.maintenance.presence import Presence
from django_pgbroker.store.presence import mark_lost_workers, prune_workers
from django_pgbroker.store.workers import beat_worker, end_worker
from tests.maintenance.connections import stopped_in_mid_statement


def stop_reason(rows, worker_id):
    return rows.one("select stop_reason from pgbroker.worker where id = %s and stopped_at is not null", worker_id)


def test_a_worker_that_missed_five_heartbeats_is_marked_as_lost_and_others_are_not(gateway, rows):
    silent = rows.worker(silent_for=61, heartbeat=12)
    fresh = rows.worker(silent_for=59, heartbeat=12)
    unhurried = rows.worker(silent_for=61, heartbeat=60)

    lost = mark_lost_workers(gateway, batch=10)

    assert [worker.id for worker in lost] == [silent]
    assert 61 <= lost[0].silent_seconds < 120
    assert stop_reason(rows, silent) == "lost"
    assert stop_reason(rows, fresh) is None
    assert stop_reason(rows, unhurried) is None


def test_a_worker_that_is_just_beating_is_left_alone(gateway, rival, rows):
    worker = rows.worker(silent_for=100)
    with rival.transaction():
        beat_worker(rival, worker, running_count=0, concurrency=1, wall_clock=0)
        assert mark_lost_workers(gateway, batch=10) == []
    assert mark_lost_workers(gateway, batch=10) == []
    assert stop_reason(rows, worker) is None


def test_a_worker_that_beat_after_the_snapshot_of_the_look_is_left_alone(gateway, rows):
    worker = rows.worker(silent_for=100)
    with stopped_in_mid_statement(rows, lambda: mark_lost_workers(gateway, batch=10)) as answers:
        rows.run("update pgbroker.worker set heartbeat_at = now() where id = %s", worker)
    assert answers == [[]]
    assert stop_reason(rows, worker) is None


def test_a_worker_that_was_only_slow_takes_the_mark_off_by_its_next_heartbeat(gateway, rival, rows):
    worker = rows.worker(silent_for=100)
    mark_lost_workers(gateway, batch=10)
    beat_worker(rival, worker, running_count=0, concurrency=1, wall_clock=0)
    assert stop_reason(rows, worker) is None


def test_a_worker_that_said_good_bye_keeps_its_reason(gateway, rows):
    worker = rows.worker(silent_for=100)
    end_worker(gateway, worker, "drained")
    assert mark_lost_workers(gateway, batch=10) == []
    assert stop_reason(rows, worker) == "drained"


def test_the_jobs_of_a_lost_worker_are_not_touched(gateway, rows):
    worker = rows.worker(silent_for=100)
    job = rows.job(rows.queue(), JobState.RUNNING, worker_id=worker)
    mark_lost_workers(gateway, batch=10)
    assert rows.state_of(job) is JobState.RUNNING


def test_workers_that_stopped_a_week_ago_are_forgotten_and_others_stay(gateway, rows):
    old = rows.worker(stopped_for=8 * 86400)
    recent = rows.worker(stopped_for=6 * 86400)
    live = rows.worker(silent_for=30 * 86400)

    assert prune_workers(gateway, batch=10) == 1

    left = rows.one("select array_agg(id order by id) from pgbroker.worker")
    assert old not in left
    assert left == sorted([recent, live])


def test_a_lost_worker_is_told_by_name_and_id(gateway, rows, caplog):
    worker = rows.worker(silent_for=100)
    swept = Presence().tick(gateway, batch=10)
    with caplog.at_level(logging.WARNING, "django_pgbroker"):
        for report in swept.reports:
            report()
    (record,) = caplog.records
    assert record.event == "worker.lost"
    assert record.fields["id"] == worker
