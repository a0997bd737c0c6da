"""A queue's ageing is changed again and again while jobs are enqueued, run and retried: none is lost or misplaced."""

import threading

from django.db import connection

from django_pgbroker import set_queue
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution, Job
from tests.maintenance.waiting import wait_until

JOBS = 400


def test_workers_and_producers_go_on_while_the_order_changes(declare, start):
    ran = []

    @declare(max_attempts=2)
    def shaky(number):
        ran.append(number)
        if number % 10 == 0 and ran.count(number) == 1:
            raise ValueError("once more")

    def produce():
        try:
            for number in range(JOBS):
                shaky.using(queue="mail", priority=number % 200 - 100).enqueue(number)
        finally:
            connection.close()

    producer = threading.Thread(target=produce, daemon=True)
    workers = [start("mail", concurrency=2) for _ in range(2)]
    producer.start()
    wait_until(Execution.objects.exists, "they run")
    for ageing in (1, 600, 0, 30):
        assert set_queue("mail", ageing_seconds=ageing, actor="ada").is_complete
    producer.join(30)
    wait_until(lambda: not Job.objects.exists(), "all are done", seconds=30)

    assert ArchivedJob.objects.filter(state=JobState.COMPLETED).count() == JOBS
    assert Execution.objects.filter(outcome=Outcome.FAILED).count() == JOBS // 10
    assert {number: ran.count(number) for number in range(JOBS) if ran.count(number) != 1} == dict.fromkeys(
        range(0, JOBS, 10), 2
    )
    assert [worker.drain() for worker in workers] == [0, 0]


def test_the_new_order_is_the_order_of_the_claims(declare, start, gate):
    ran = []

    @declare()
    def note(number):
        ran.append(number)
        if number == 0:
            gate.wait()

    note.using(queue="mail", priority=100).enqueue(0)
    start("mail", concurrency=1)
    gate.wait_until_arrived()
    note.using(queue="mail").enqueue(1)
    note.using(queue="mail", priority=-1).enqueue(2)
    note.using(queue="mail", priority=1).enqueue(3)
    set_queue("mail", ageing_seconds=0, actor="ada")
    gate.open()
    wait_until(lambda: not Job.objects.exists(), "all are done")
    assert ran == [0, 1, 2, 3], "without ageing the order is that of time"
