"""An event-loop pool whose claims run one handler of the test."""

from queue import SimpleQueue

import pytest
from django.db import connection

from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.registry import JobType
from django_pgbroker.worker.async_executor import AsyncExecutor
from django_pgbroker.worker.executor import Directory
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.pools.event_loop import EventLoopPool
from tests.worker.claims import make_claim
from tests.worker.links import LooseLink

CANCELLED = Stop(StopKind.CANCELLED, "cancelled while it ran")
TIMED_OUT = Stop(StopKind.TIMED_OUT, "longer than its time-out")


class Trial:
    """A pool whose claims run one handler."""

    def __init__(self, handler, capacity=10, sync_threads=5):
        self.link = LooseLink(set(), CANCELLED)
        directory = Directory({1: JobType("tests.handler", handler)}, {1: "default"}, {1: "acme"})
        executor = AsyncExecutor(directory, 1000, self.link, HandlerHeartbeats())
        self.delivered = SimpleQueue()
        self.pool = EventLoopPool(capacity, sync_threads, executor.execute_async, self.delivered.put)
        self.pool.start()

    def give(self, *numbers, **arguments):
        self.pool.give([make_claim(number, arguments) for number in numbers])

    def take(self, count=1):
        return [self.delivered.get(timeout=10) for _ in range(count)]

    def run(self, count, **arguments):
        """The verdicts of so many jobs, in the order of their numbers."""
        self.give(*range(1, count + 1), **arguments)
        return sorted(self.take(count))

    def stop(self, number, stop=CANCELLED, *, is_last_call=False):
        self.link.stop = stop
        self.link.stopping.add(number * 10)
        self.pool.interrupt(number * 10, stop, is_last_call=is_last_call)


@pytest.fixture
def make_trial():
    made = []

    def make_trial(handler, **more):
        made.append(Trial(handler, **more))
        return made[-1]

    yield make_trial
    for trial in made:
        trial.pool.close(5.0)
        assert trial.delivered.empty(), "a verdict too many"


def statement(text):
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchone()[0]
