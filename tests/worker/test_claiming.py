"""Which jobs a worker takes, in which order, and which it leaves alone."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from django_pgbroker import pause_queue, resume_queue
from django_pgbroker.domain.states import JobState
from django_pgbroker.maintenance.expirer import Expirer
from django_pgbroker.models import ArchivedJob, Execution, Job, Worker
from django_pgbroker.registry import registry
from tests.factories import ArchivedJobFactory
from tests.maintenance.waiting import wait_until

LISTENERS = (
    "select pid from pg_stat_activity "
    "where datname = current_database() and application_name like 'pgbroker listener%%'"
)


def test_until_empty_runs_every_job_once_and_ends_with_status_zero(declare, run_until_empty):
    ran = Counter()
    count = declare("tests.count")(lambda number: ran.update([number]))
    with transaction.atomic():
        handles = [count.enqueue(number=number) for number in range(200)]

    assert run_until_empty(concurrency=4) == 0

    assert ran == Counter(range(200))
    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    assert Execution.objects.count() == 200
    assert not Job.objects.exists()


def test_until_empty_on_empty_queues_ends_at_once(run_until_empty):
    assert run_until_empty("default,mail:5") == 0


def test_until_empty_ends_and_names_what_it_leaves_in_a_paused_queue_and_without_a_handler(
    declare, run_until_empty, caplog
):
    @declare()
    def wait_for_better_days():
        pytest.fail("the queue is paused")

    handle = wait_for_better_days.using(queue="mail").enqueue()
    pause_queue("mail", actor="alice", reason="the post is on strike")
    assert run_until_empty("default,mail") == 0
    assert handle.status() is JobState.PENDING
    assert "worker.left_jobs" in caplog.text
    assert "queue=mail" in caplog.text


def test_until_empty_waits_for_jobs_that_are_due_later_and_for_what_other_workers_run(declare, start, gate):
    @declare()
    def slow():
        gate.wait()

    later = declare("tests.later")(lambda: 1).using(delay=0.5).enqueue()
    held = slow.enqueue()
    holder = start(concurrency=1)
    gate.wait_until_arrived()
    second = start(until_empty=True)
    wait_until(lambda: later.status() is JobState.COMPLETED, "the delayed job is done")
    assert second.lives
    gate.open()
    assert second.join() == 0
    assert held.status() is JobState.COMPLETED
    holder.drain()


def test_a_job_starts_soon_after_its_commit_although_polls_are_rare(declare, start, settings):
    settings.PGBROKER = {"POLL_MAX_SECONDS": 60}
    noop = declare("tests.noop")(lambda: 1)
    start()
    for _ in range(3):
        handle = noop.enqueue()
        wait_until(lambda handle=handle: handle.status() is JobState.COMPLETED, "a notification woke the worker", 10)


def test_without_notifications_polling_finds_the_job(declare, start, settings, rows):
    settings.PGBROKER = {"LISTEN": False, "POLL_MAX_SECONDS": 0.1}
    noop = declare("tests.noop")(lambda: 1)
    start()
    wait_until(lambda: rows.one("select count(*) from pgbroker.worker"), "the worker is there")
    assert rows.one(f"select count(*) from ({LISTENERS}) as listener") == 0
    handle = noop.enqueue()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it polls")


def test_a_job_is_not_started_before_the_commit_and_sees_the_rows_that_were_written_with_it(declare, start):
    @declare()
    def read(pk):
        return ArchivedJob.objects.get(pk=pk).reason

    start()
    wait_until(Worker.objects.exists, "the worker has made the rows of its names")
    with transaction.atomic():
        row = ArchivedJobFactory(reason="written together")
        handle = read.enqueue(pk=row.pk)
        with transaction.atomic():
            undone = read.enqueue(pk=row.pk)
            transaction.set_rollback(True)
    wait_until(lambda: handle.status().is_finished, "it ran")
    assert handle.result() == "written together"
    assert Execution.objects.filter(job_id=undone.id).count() == 0


def test_pending_jobs_run_by_priority_and_among_equals_by_age(declare, run_until_empty):
    order = []
    note = declare("tests.note")(lambda number: order.extend([number]))
    for number, priority in enumerate([0, -10, 50, 0, 50]):
        note.using(priority=priority).enqueue(number=number)
    run_until_empty(concurrency=1)
    assert order == [2, 4, 0, 3, 1]


def test_an_urgent_job_overtakes_what_no_worker_has_claimed_yet(declare, start, gate):
    order = []

    @declare()
    def note(number):
        order.append(number)
        gate.wait()

    for number in range(5):
        note.enqueue(number=number)
    start(concurrency=1)
    gate.wait_until_arrived()
    last = note.using(priority="user").enqueue(number=99)
    gate.open()
    wait_until(lambda: not Job.objects.exists(), "all is done")
    assert last.status() is JobState.COMPLETED
    assert order == [0, 99, 1, 2, 3, 4]


def test_queues_are_served_by_weight_and_the_light_one_is_not_starved(declare, start):
    order = []
    note = declare("tests.note")(lambda queue: order.extend([queue]))
    with transaction.atomic():
        for _ in range(60):
            note.using(queue="heavy").enqueue(queue="heavy")
            note.using(queue="light").enqueue(queue="light")
    worker = start("heavy:9,light", concurrency=1, until_empty=True)
    worker.join()
    assert Counter(order) == {"heavy": 60, "light": 60}
    # nine of ten are expected among the first sixty; half would be no weight at all, all would be starvation
    first = Counter(order[:60])
    assert first["heavy"] > 36


def test_other_queues_are_left_alone(declare, run_until_empty):
    noop = declare("tests.noop")(lambda: 1)
    mine, other = noop.enqueue(), noop.using(queue="other").enqueue()
    run_until_empty("default")
    assert (mine.status(), other.status()) == (JobState.COMPLETED, JobState.PENDING)


def test_a_paused_queue_is_not_claimed_and_a_resume_wakes_its_workers(declare, start, settings):
    settings.PGBROKER = {"POLL_MAX_SECONDS": 60}
    noop = declare("tests.noop")(lambda: 1)
    start("default,mail")
    first = noop.enqueue()
    wait_until(lambda: first.status() is JobState.COMPLETED, "the queue is served")
    pause_queue("default", actor="test")

    held = noop.enqueue()
    beside = noop.using(queue="mail").enqueue()
    wait_until(lambda: beside.status() is JobState.COMPLETED, "the other queue is served")
    assert held.status() is JobState.PENDING

    resume_queue("default", actor="test")
    wait_until(lambda: held.status() is JobState.COMPLETED, "the resumed queue is served", seconds=5)


def test_jobs_that_run_when_their_queue_is_paused_finish(declare, start, gate):
    @declare()
    def slow():
        gate.wait()
        return "done"

    handle = slow.enqueue()
    start()
    gate.wait_until_arrived()
    pause_queue("default", actor="test")
    gate.open()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it finished")


@pytest.mark.parametrize("option", ["expires", "deadline"])
def test_a_job_that_is_overdue_never_runs_and_ends_as_expired(declare, run_until_empty, gateway, option):
    ran = []
    note = declare("tests.note")(lambda: ran.append(1))
    overdue = note.using(**{option: timedelta(hours=1)}).enqueue()
    with connection.cursor() as cursor:
        cursor.execute("update pgbroker.job set expires_at = now() - interval '1 s'")
    fine = note.using(**{option: timedelta(hours=1)}).enqueue()
    Expirer().tick(gateway, batch=10)

    run_until_empty()

    assert (overdue.status(), fine.status(), ran) == (JobState.EXPIRED, JobState.COMPLETED, [1])


def test_an_overdue_job_is_not_claimed_even_before_the_duty_has_seen_it(declare, start, rows):
    ran = []
    note = declare("tests.note")(lambda number: ran.extend([number]))
    overdue = note.using(expires=timedelta(hours=1)).enqueue(number=1)
    rows.run("update pgbroker.job set expires_at = now() - interval '1 s'")
    fine = note.enqueue(number=2)
    start(concurrency=1)
    wait_until(lambda: fine.status() is JobState.COMPLETED, "the job behind it is done")
    assert (overdue.status(), ran) == (JobState.PENDING, [2])


def test_a_job_of_a_type_that_this_worker_does_not_know_stays_pending_and_another_worker_takes_it(
    declare, start, run_until_empty
):
    newer = declare("tests.newer")(lambda: "new code")
    known = declare("tests.known")(lambda: "old code")
    waiting, done = newer.enqueue(), known.enqueue()
    job_type = registry._by_name.pop("tests.newer")

    assert run_until_empty() == 0
    assert (waiting.status(), done.status()) == (JobState.PENDING, JobState.COMPLETED)
    assert Job.objects.get(pk=waiting.id).attempt == 0

    registry.register(job_type)
    start()
    wait_until(lambda: waiting.status() is JobState.COMPLETED, "a worker that knows it has taken it")
    assert ArchivedJob.objects.get(pk=waiting.id).attempt == 1


def test_an_alias_runs_jobs_that_were_stored_under_the_old_name(declare, run_until_empty):
    old = declare("tests.old_name")(lambda: "ran")
    handle = old.enqueue()
    registry._by_name.pop("tests.old_name")
    declare("tests.new_name", aliases=("tests.old_name",))(lambda: "ran under the new name")
    try:
        run_until_empty()
    finally:
        registry._by_name.pop("tests.old_name")
    assert handle.result() == "ran under the new name"


def test_a_tenant_is_told_to_the_handler_by_its_name(declare, run_until_empty):
    handle = declare("tests.tenant")(lambda ctx: ctx.tenant).using(tenant="acme").enqueue()
    run_until_empty()
    assert handle.result() == "acme"


def test_two_workers_share_the_jobs_and_run_none_of_them_twice(declare, start):
    ran = Counter()
    count = declare("tests.count")(lambda number: ran.update([number]))
    with transaction.atomic():
        for number in range(300):
            count.enqueue(number=number)
    workers = [start(concurrency=2, until_empty=True) for _ in range(2)]
    assert [worker.join() for worker in workers] == [0, 0]
    assert ran == Counter(range(300))
    assert Execution.objects.count() == 300


def test_a_slow_job_does_not_hold_up_those_behind_it(declare, start, gate):
    @declare()
    def slow():
        gate.wait()

    quick = declare("tests.quick")(lambda: 1)
    slow.enqueue()
    handles = [quick.enqueue() for _ in range(20)]
    start(concurrency=2)
    wait_until(lambda: all(handle.status() is JobState.COMPLETED for handle in handles), "the other slot ran them")


def test_jobs_far_in_the_future_are_left_alone(declare, start, rows):
    noop = declare("tests.noop")(lambda: 1)
    future = noop.using(run_at=timezone.now() + timedelta(days=300)).enqueue()
    now = noop.enqueue()
    start()
    wait_until(lambda: now.status() is JobState.COMPLETED, "the other one is done")
    assert future.status() is JobState.SCHEDULED
