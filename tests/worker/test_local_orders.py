"""What operators ask of one worker while it works: another size, and queues to leave and to take up again."""

import asyncio
import logging
import threading

import pytest
from django.db import transaction

from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import Execution, Job, Worker
from django_pgbroker.operations.workers import pause_queue_on_worker, resize_worker, resume_queue_on_worker
from django_pgbroker.worker.options import MOST_PLACES
from tests.maintenance.waiting import wait_until
from tests.worker.test_orders import worker_id


@pytest.fixture(autouse=True)
def quick_beats(settings):
    settings.PGBROKER = {"POLL_MAX_SECONDS": 0.1, "LEASE_SECONDS": 2, "HEARTBEAT_SECONDS": 0.5, "DRAIN_SECONDS": 10}


@pytest.fixture
def arrivals(declare):
    """Jobs that note their arrival and wait until the test lets one of them go."""
    return Arrivals(declare)


class Arrivals:
    def __init__(self, declare, queue="default", **options):
        self.running = set()
        self.most = 0
        self.began = []
        self._lock = threading.Lock()
        self._passes = threading.Semaphore(0)

        @declare(f"tests.arrive_{queue}", queue=queue, **options)
        def arrive(number):
            with self._lock:
                self.running.add(number)
                self.began.append(number)
                self.most = max(self.most, len(self.running))
            try:
                assert self._passes.acquire(timeout=20), "the test never let it go"
            finally:
                with self._lock:
                    self.running.discard(number)

        self.job = arrive

    def enqueue(self, count, first=0):
        return [self.job.enqueue(number) for number in range(first, first + count)]

    def let_go(self, count=1):
        for _ in range(count):
            self._passes.release()

    def wait_for(self, count):
        wait_until(lambda: len(self.running) == count, f"{count} run at once, not {len(self.running)}")


def test_a_worker_grows_while_jobs_run_and_its_row_says_so(arrivals, start):
    arrivals.enqueue(6)
    start(concurrency=1)
    arrivals.wait_for(1)
    assert resize_worker(worker_id(), 4, actor="ada") is True
    arrivals.wait_for(4)
    wait_until(lambda: Worker.objects.get().concurrency == 4, "the row tells the new size")
    arrivals.let_go(6)
    wait_until(lambda: not Job.objects.exists(), "all are done")
    assert arrivals.most == 4


def test_a_worker_shrinks_by_letting_what_runs_finish_and_beginning_nothing(arrivals, start):
    arrivals.enqueue(5)
    start(concurrency=5)
    arrivals.wait_for(5)
    resize_worker(worker_id(), 2, actor="ada")
    wait_until(lambda: Worker.objects.get().concurrency == 2, "it has obeyed")
    assert len(arrivals.running) == 5, "what runs goes on"
    arrivals.enqueue(6, first=5)
    arrivals.let_go(3)
    arrivals.wait_for(2)
    arrivals.most = 0
    for done in range(4, 11):
        arrivals.let_go()
        wait_until(lambda done=done: Execution.objects.count() == done, "one more is done")
    arrivals.let_go(10)
    wait_until(lambda: not Job.objects.exists(), "all are done")
    assert arrivals.most == 2
    assert sorted(arrivals.began) == list(range(11)), "each began once"


def test_a_worker_can_grow_again_before_it_has_shrunk(arrivals, start):
    arrivals.enqueue(8)
    start(concurrency=3)
    arrivals.wait_for(3)
    for size in (1, 4, 2, 5):
        resize_worker(worker_id(), size, actor="ada")
        wait_until(lambda size=size: Worker.objects.get().concurrency == size, "it has obeyed")
    arrivals.wait_for(5)
    arrivals.let_go(8)
    wait_until(lambda: not Job.objects.exists(), "all are done")
    assert arrivals.most == 5


def test_a_worker_without_threads_changes_the_tasks_of_its_loop(declare, start):
    running, most = [], []
    let_go = threading.Event()

    @declare()
    async def turn(number):
        running.append(number)
        most.append(len(running))
        while not let_go.is_set():
            await asyncio.sleep(0.01)
        running.remove(number)

    for number in range(6):
        turn.enqueue(number)
    start(async_concurrency=1, types=("tests.turn",))
    wait_until(lambda: len(running) == 1, "one runs")
    resize_worker(worker_id(), 4, actor="ada")
    wait_until(lambda: len(running) == 4, "four run")
    assert Worker.objects.get().ordered_concurrency == 4
    let_go.set()
    wait_until(lambda: not Job.objects.exists(), "all are done")
    assert max(most) == 4


def test_what_a_worker_can_not_run_at_once_is_cut_and_told(arrivals, start, caplog, monkeypatch):
    monkeypatch.setitem(MOST_PLACES, ExecutorKind.THREAD, 3)
    arrivals.enqueue(5)
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        start(concurrency=1)
        arrivals.wait_for(1)
        resize_worker(worker_id(), 400, actor="ada")
        wait_until(lambda: Worker.objects.get().concurrency == 3, "it runs what it can")
    assert "to run 400 handlers at once, which is more than it can (concurrency=3)" in caplog.text
    arrivals.let_go(5)


# ------------------------------------------------------------------------------------------------ queues to leave


def test_a_worker_that_is_to_leave_a_queue_begins_nothing_of_it_and_takes_it_up_again_at_once(declare, start, settings):
    mail, other = Arrivals(declare, "mail"), Arrivals(declare, "other")
    [running] = mail.enqueue(1)
    start("mail,other", concurrency=2)
    mail.wait_for(1)
    assert pause_queue_on_worker(worker_id(), "mail", actor="ada") is True
    # the order has come when this is told, for one heartbeat brings both
    resize_worker(worker_id(), 3, actor="ada")
    wait_until(lambda: Worker.objects.get().concurrency == 3, "it has obeyed")
    left = mail.enqueue(3, first=10)
    for number in range(3):
        [beside] = other.enqueue(1, first=number)
        other.let_go()
        wait_until(lambda beside=beside: beside.status() is JobState.COMPLETED, "it works, on the other queue")
    mail.let_go()
    wait_until(lambda: running.status() is JobState.COMPLETED, "what ran has finished")
    assert mail.began == [0]
    assert {handle.status() for handle in left} == {JobState.PENDING}

    assert resume_queue_on_worker(worker_id(), "mail", actor="ada") is True
    mail.let_go(3)
    wait_until(lambda: not Job.objects.exists(), "it has taken the queue up")
    assert sorted(mail.began) == [0, 10, 11, 12]


def test_what_it_has_claimed_ahead_of_the_queue_goes_back_uncounted_and_nothing_else_does(
    declare, start, gate, monkeypatch
):
    # Otherwise a backlog in which nothing moves would be handed back after a second, order or not.
    monkeypatch.setattr("django_pgbroker.worker.stations._STALL_SECONDS", 3600)
    ran = []

    @declare()
    def quick(number):
        ran.append(number)
        if number == 301:
            gate.wait()

    with transaction.atomic():
        for number in range(500):
            quick.using(queue="mail" if number % 2 else "other").enqueue(number)
    worker = start("mail,other", concurrency=1)
    gate.wait_until_arrived()
    claimed = Job.objects.filter(state=JobState.RUNNING)
    kept = set(claimed.filter(queue__name="other").values_list("id", flat=True))
    assert claimed.filter(queue__name="mail").count() > 1, "nothing was claimed ahead, so nothing is shown"
    assert kept

    pause_queue_on_worker(worker_id(), "mail", actor="ada")
    wait_until(lambda: claimed.filter(queue__name="mail").count() == 1, "what waited goes back")
    left = Job.objects.filter(queue__name="mail", state=JobState.PENDING)
    assert set(left.values_list("attempt", "interruptions")) == {(0, 0)}
    assert kept <= set(claimed.filter(queue__name="other").values_list("id", flat=True))
    before = len(ran)
    gate.open()
    wait_until(lambda: not Job.objects.filter(queue__name="other").exists(), "the other queue is done")
    assert [number for number in ran[before:] if number % 2] == [], "nothing of the queue began"
    others = [number for number in ran if not number % 2]
    assert others == sorted(others), "what stayed kept its order"
    assert worker.drain() == 0


def test_in_strict_order_a_queue_that_is_left_does_not_stand_before_the_next(declare, start):
    first, second = Arrivals(declare, "first"), Arrivals(declare, "second")
    start("first,second", concurrency=1, is_strict=True)
    wait_until(lambda: Worker.objects.filter(stopped_at=None).exists(), "it is there")
    pause_queue_on_worker(worker_id(), "first", actor="ada")
    resize_worker(worker_id(), 2, actor="ada")
    wait_until(lambda: Worker.objects.get().concurrency == 2, "it has obeyed")
    first.enqueue(1)
    second.enqueue(2)
    second.wait_for(2)
    second.let_go(2)
    wait_until(lambda: Execution.objects.count() == 2, "they are done")
    assert first.began == []
    resume_queue_on_worker(worker_id(), "first", actor="ada")
    first.wait_for(1)
    first.let_go()


def test_an_order_is_for_one_process_and_ends_with_it(arrivals, start):
    worker = start(concurrency=1)
    wait_until(lambda: Worker.objects.filter(stopped_at=None).exists(), "it is there")
    pause_queue_on_worker(worker_id(), "default", actor="ada")
    resize_worker(worker_id(), 3, actor="ada")
    wait_until(lambda: Worker.objects.get().concurrency == 3, "it has obeyed")
    arrivals.enqueue(2)
    assert worker.drain() == 0
    assert arrivals.began == []
    start(concurrency=1)
    arrivals.wait_for(1)
    assert Worker.objects.get(stopped_at=None).concurrency == 1
    arrivals.let_go(2)
