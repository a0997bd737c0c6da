"""B063: time-outs of handlers that do not want to end, and the threads that they run in."""

import hashlib
import threading
import time

import pytest
from django.db import connection

from django_pgbroker import JobState
from django_pgbroker.domain.states import Outcome
from django_pgbroker.models import ArchivedJob, Execution
from tests.maintenance.waiting import wait_until

#: Some of them compute, and each of those slows all others down.
SLOTS = 12


@pytest.fixture(autouse=True)
def short_grace(settings):
    settings.PGBROKER = {"POLL_MAX_SECONDS": 0.1, "DRAIN_SECONDS": 10, "STOP_GRACE_SECONDS": 1}


def sleep_in_c(_ctx):
    threading.Event().wait(8)


def swallow(_ctx):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            time.sleep(0.01)
        except Exception:
            continue


def raise_in_finally(_ctx):
    try:
        while True:
            time.sleep(0.01)
    finally:
        raise ValueError("raised in finally")


def end_at_the_limit(_ctx):
    time.sleep(1.0)


def wait_in_sql(_ctx):
    with connection.cursor() as cursor:
        cursor.execute("select pg_sleep(20)")


def compute(_ctx):
    while True:
        hashlib.sha256(b"x" * 1000).digest()


KINDS = [sleep_in_c, swallow, raise_in_finally, end_at_the_limit, wait_in_sql, compute]


def test_b063_after_a_hundred_time_outs_of_all_kinds_the_pool_has_its_size(declare, start, gate):
    """Sleeping in C, swallowing, raising in finally, ending at the limit; then all slots run side by side."""

    @declare(timeout=1, max_attempts=1)
    def awful(kind, ctx):
        KINDS[kind](ctx)

    @declare()
    def gated():
        gate.wait()

    handles = [awful.enqueue(kind=number % len(KINDS)) for number in range(100)]
    worker = start(concurrency=SLOTS, max_hung=1000).worker
    wait_until(lambda: ArchivedJob.objects.count() == 100, "all have ended", seconds=60)
    states = {handle.status() for handle in handles}
    assert states <= {JobState.DEAD, JobState.COMPLETED}
    timed_out = Execution.objects.filter(outcome=Outcome.TIMED_OUT).count()
    assert timed_out >= 100 - sum(KINDS[number % len(KINDS)] is end_at_the_limit for number in range(100))

    after = [gated.enqueue() for _ in range(SLOTS)]
    gate.wait_until_arrived(SLOTS)
    gate.open()
    wait_until(lambda: {handle.status() for handle in after} == {JobState.COMPLETED}, "the pool has its size")
    wait_until(lambda: worker._pools.hung_count == 0, "the hung ones have ended")
