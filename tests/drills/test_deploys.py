"""Rolling deploys under load: old workers are told to stop while new ones begin, again and again."""

import signal
from itertools import cycle

import pytest

from django_pgbroker.domain.states import Outcome
from tests.drills import jobs
from tests.drills.crew import Crew
from tests.scenarios.processes import ManageProcess

#: Longer than the drain, so that many of them are interrupted.
LONG_MILLISECONDS = 700


@pytest.fixture
def crew(crew: Crew) -> Crew:
    """Leases as they are by default: on a busy machine none may lapse by chance."""
    crew.settings = {"LEASE_SECONDS": 60, "HEARTBEAT_SECONDS": 12, "DRAIN_SECONDS": 0.3}
    return crew


def restart(crew: Crew, old: ManageProcess, lengths: "cycle[int]") -> ManageProcess:
    new = crew.start_worker("--concurrency", "4")
    new.wait_until_ready()
    crew.job_ids += [jobs.work.enqueue(milliseconds=next(lengths)).id for _ in range(60)]
    old.send(signal.SIGTERM)
    assert old.wait(30) == 0, old.output
    return new


@pytest.mark.parametrize("restarts", [pytest.param(4, id="4"), pytest.param(20, id="20", marks=pytest.mark.drill)])
def test_rolling_restarts_under_load_cost_no_attempt_and_lose_nothing(crew, restarts):
    lengths = cycle([LONG_MILLISECONDS] + [5] * 14)
    crew.job_ids += [jobs.work.enqueue(milliseconds=next(lengths)).id for _ in range(120)]
    workers = [crew.start_worker("--concurrency", "4") for _ in range(2)]
    for worker in workers:
        worker.wait_until_ready()
    for _ in range(restarts):
        workers = [workers[1], restart(crew, workers[0], lengths)]
    crew.finish(120)
    crew.check()
    assert crew.one("select count(*) from pgbroker.archived_job where state = 10 and attempt = 1") == len(crew.job_ids)
    assert crew.one("select sum(deaths) from pgbroker.archived_job") == 0
    by_outcome = "select coalesce((select count(*) from pgbroker.execution where outcome = %s), 0)"
    interruptions = crew.one(by_outcome, Outcome.INTERRUPTED)
    assert crew.one("select count(*) from pgbroker.execution") == len(crew.job_ids) + interruptions
    assert crew.one("select sum(interruptions) from pgbroker.archived_job") == interruptions
    assert interruptions > 0, "the drill has a point only where some were interrupted"
