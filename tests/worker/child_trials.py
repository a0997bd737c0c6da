"""A pool of child processes, driven without a worker."""

import time
from collections import Counter
from queue import SimpleQueue

import pytest

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.domain.verdicts import Verdict
from django_pgbroker.registry import registry
from django_pgbroker.worker.children_brief import write_brief
from django_pgbroker.worker.executor import Directory
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.pools.children import ChildPool
from tests.maintenance.waiting import wait_until
from tests.worker import child_jobs
from tests.worker.claims import make_claim
from tests.worker.links import LooseLink

CANCELLED = Stop(StopKind.CANCELLED, "cancelled while it ran")
TIMED_OUT = Stop(StopKind.TIMED_OUT, "longer than its time-out")
DRAINING = Stop(StopKind.DRAINING, "the worker had to stop before the job was done")

NAMES = [job_type.name for job_type in registry.all() if job_type.handler.__module__ == child_jobs.__name__]
IDS = {name.removeprefix("children."): number for number, name in enumerate(NAMES, 1)}


def make_completed(number, run_microseconds):
    return Verdict(number, number * 10, Outcome.COMPLETED, JobState.COMPLETED, run_microseconds=run_microseconds)


class TrialLink(LooseLink):
    """Claims stop as the test says, each for its own reason."""

    def __init__(self, stops):
        super().__init__()
        self.find_stop = stops.get


class Trial:
    """A pool, the stops that its worker would tell, and a file in which handlers write what they do."""

    def __init__(self, path, capacity, **brief):
        self.path = path
        self.stops = {}
        self.heartbeats = HandlerHeartbeats()
        self.delivered = SimpleQueue()
        directory = Directory(
            {IDS[name.removeprefix("children.")]: registry.get(name) for name in NAMES}, {1: "default"}, {1: "acme"}
        )
        self.pool = ChildPool(
            capacity,
            write_brief(directory, get_settings())._replace(**brief),
            directory,
            self.heartbeats,
            link=TrialLink(self.stops),
            may_begin=lambda claim: claim.id != 66_666,
            now=time.time,
            deliver=self.delivered.put,
        )
        self.pool.start()
        if "settings_module" not in brief:
            wait_until(lambda: len(self.pids()) == capacity and all(self.ready()), "all are ready", seconds=60)

    def ready(self):
        return [child.is_ready for child in self.pool._children]

    def give(self, name, *numbers, columns=None, **arguments):
        claims = [
            make_claim(number, arguments, **(columns or {}))._replace(job_type_id=IDS[name]) for number in numbers
        ]
        self.pool.give(claims)

    def take(self, count=1):
        return [self.delivered.get(timeout=20) for _ in range(count)]

    def run(self, name, **arguments):
        self.give(name, 1, **arguments)
        return self.take()[0]

    def noted(self, word="begun"):
        """How often each job has written this."""
        if not self.path.exists():
            return Counter()
        lines = [line.split() for line in self.path.read_text().splitlines()]
        return Counter(int(number) for number, said in lines if said == word)

    def wait_until_begun(self, *numbers):
        wait_until(lambda: set(numbers) <= set(self.noted()), f"{numbers} have begun")

    def stop(self, number, stop, *, is_last_call=False):
        self.stops[number * 10] = stop
        self.pool.interrupt(number * 10, stop, is_last_call=is_last_call)

    def pids(self):
        return [child.process.pid for child in self.pool._children]


@pytest.fixture
def make_trial(broker_database, tmp_path):
    made = []

    def make_trial(capacity=1, **brief):
        made.append(Trial(tmp_path / "notes", capacity, **brief))
        return made[-1]

    yield make_trial
    for trial in made:
        children = list(trial.pool._children)
        trial.pool.close(10.0)
        assert all(child.process.poll() is not None for child in children), "no child is left"
        assert trial.delivered.empty(), "a verdict too many"


@pytest.fixture
def trial(make_trial):
    return make_trial()
