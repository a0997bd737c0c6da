"""When a worker makes room for a fresh one."""

import threading

import pytest
from django.db import connections, transaction

from django_pgbroker.domain.errors import InvalidOption
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, Execution
from django_pgbroker.worker.options import WorkerOptions, parse_queues
from django_pgbroker.worker.recycling import RECYCLED, Recycling, measure_resident_bytes
from django_pgbroker.worker.worker import Worker

MEBIBYTE = 1_048_576


def test_without_limits_nothing_is_ever_enough():
    recycling = Recycling(None, None, most_hung=5)
    assert all(recycling.may_begin() for _ in range(1000))
    recycling.note_ended(1000)
    assert not recycling.is_spent
    assert not recycling.check(4, holds_nothing=True)


def test_no_more_begin_than_are_allowed_and_it_is_enough_when_all_of_them_are_recorded():
    recycling = Recycling(2, None, most_hung=5)
    assert [recycling.may_begin() for _ in range(3)] == [True, True, False]
    assert recycling.is_spent
    assert not recycling.check(0, holds_nothing=False)
    assert recycling.check(0, holds_nothing=True)
    assert recycling.reason == "2 jobs done"
    assert not recycling.check(0, holds_nothing=True)


def test_memory_counts_after_the_first_job():
    recycling = Recycling(None, 100, most_hung=5, measure=lambda: 101 * MEBIBYTE)
    assert not recycling.check(0, holds_nothing=True)
    recycling.note_ended(1)
    assert recycling.check(0, holds_nothing=False)
    assert recycling.reason == "101 MiB of memory used"


def test_memory_below_the_limit_is_fine():
    recycling = Recycling(None, 100, most_hung=5, measure=lambda: 99 * MEBIBYTE)
    recycling.note_ended(1)
    assert not recycling.check(0, holds_nothing=True)


def test_the_memory_of_this_process_is_measured():
    before = measure_resident_bytes()
    held = bytearray(64 * MEBIBYTE)
    held[::4096] = b"x" * len(held[::4096])
    assert 60 * MEBIBYTE < measure_resident_bytes() - before < 100 * MEBIBYTE


def test_too_many_hanging_handlers_are_enough(caplog):
    recycling = Recycling(None, None, most_hung=2)
    assert not recycling.check(1, holds_nothing=True)
    assert recycling.check(2, holds_nothing=False)
    assert "worker.too_many_hung" in caplog.text


@pytest.mark.parametrize("limits", [{"max_jobs": 0}, {"max_memory_mb": -1}])
def test_limits_that_make_no_sense_are_refused(limits):
    with pytest.raises(InvalidOption, match="must be 1 or more"):
        WorkerOptions(parse_queues("default"), **limits)


def test_b059_each_job_once(declare, broker_database):
    """Worker after worker in four threads; processes would take minutes to start. ``tests/scenarios`` has those."""
    ran, statuses = [], []

    @declare()
    def noop(ctx):
        ran.append(ctx.id)

    with transaction.atomic():
        ids = [noop.enqueue().id for _ in range(500)]

    def work():
        options = WorkerOptions(parse_queues("default"), 1, until_empty=True, max_jobs=1)
        try:
            while (status := Worker(options).run()) == RECYCLED:
                statuses.append(status)
            statuses.append(status)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(ran) == ids
    assert Execution.objects.count() == ArchivedJob.objects.filter(state=JobState.COMPLETED).count() == 500
    assert (statuses.count(RECYCLED), statuses.count(0)) == (500, 4)
