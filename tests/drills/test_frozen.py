"""Workers that stop without dying: frozen past their leases, cut off by a network that swallows everything."""

import signal
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from django_pgbroker.worker.lease_trust import LEASES_NOT_KEPT
from tests.drills import crash_points, jobs
from tests.drills.crew import Crew
from tests.drills.proxy import Proxy
from tests.maintenance.waiting import wait_until
from tests.scenarios.processes import ManageProcess

_HELD = "select count(*) from pgbroker.job where state = 1 and worker_id = %s"

#: Those of them whose handler runs, or has ended a moment ago.
_BEGUN = """
    select count(distinct job.id) from effect join pgbroker.job using (lease_token)
    where what = 'begun' and state = 1 and worker_id = %s
"""

_PENDING = "select count(*) from pgbroker.job where state = 0"

_WORKER = "select id from pgbroker.worker where process_id = %s"

_BEATS = "select heartbeat_at > clock_timestamp() - interval '1 second' from pgbroker.worker where process_id = %s"

#: Held by each worker that is stopped: its four slots, and what it has claimed beyond them.
_SLOTS = 4


def produce(crew: Crew, count: int) -> None:
    """Jobs that can all be claimed at once."""
    with transaction.atomic():
        crew.job_ids += [jobs.work.enqueue(milliseconds=20).id for _ in range(count)]


def stop_at_work(crew: Crew, worker: ManageProcess, count: int, stop: Callable[[], None]) -> int:
    """Produce, and stop the worker while all its slots are busy and there is more to do; answers its id."""
    worker_id = crew.one(_WORKER, worker.pid)
    produce(crew, count)
    wait_until(lambda: crew.one(_BEGUN, worker_id) >= _SLOTS, "it works")
    stop()
    assert crew.one(_PENDING), "it is stopped in the middle of its work"
    return worker_id


def wait_until_taken_over(crew: Crew, worker_id: int) -> None:
    wait_until(lambda: not crew.one(_HELD, worker_id), "its leases lapse and nothing is left to it", 30)
    assert crew.one("select count(*) from pgbroker.execution where outcome = 6 and worker_id = %s", worker_id)


def freeze_and_thaw(crew: Crew, zombie: ManageProcess, count: int) -> None:
    """Stop a worker while it works, let the others take its jobs over, and wake it."""
    worker_id = stop_at_work(crew, zombie, count, lambda: zombie.send(signal.SIGSTOP))
    try:
        wait_until_taken_over(crew, worker_id)
    finally:
        zombie.send(signal.SIGCONT)


def test_a_worker_frozen_past_its_leases_is_refused_what_others_have_taken_over(crew):
    zombie = crew.start_worker("--concurrency", "4", "--no-maintenance")
    crew.start_worker("--concurrency", "4")
    for worker in crew.processes:
        worker.wait_until_ready()

    freeze_and_thaw(crew, zombie, 300)
    crew.finish()

    crew.check()
    assert zombie.says("lease.lost")
    assert zombie.says("was refused")


def cut_off_and_reconnect(crew: Crew, proxy: Proxy, far: ManageProcess, count: int, *, with_a_cut: bool) -> None:
    """Swallow all traffic of a worker while it works, until the others have taken its jobs over."""
    worker_id = stop_at_work(crew, far, count, proxy.stall)
    try:
        wait_until_taken_over(crew, worker_id)
        if with_a_cut:
            proxy.cut()
    finally:
        proxy.flow()


@pytest.fixture
def proxy(crew: Crew):
    made = Proxy(crew.database)
    yield made
    crew.end()
    made.close()


def start_far(crew: Crew, proxy: Proxy) -> ManageProcess:
    return crew.start_worker("--concurrency", "4", "--no-maintenance", database=proxy.database).wait_until_ready()


def has_given_up(far: ManageProcess) -> bool:
    """By itself, or ended by its watchdog while it waited for the network."""
    return far.says("worker.gave_up") or far.says("worker.cut_off")


def start_again_where_it_gave_up(crew: Crew, proxy: Proxy, far: ManageProcess) -> ManageProcess:
    """A worker that could not renew its leases while it worked ends itself, unless the network was back in time."""
    wait_until(lambda: has_given_up(far) or crew.one(_BEATS, far.pid), "it beats again or has given up", 30)
    if not has_given_up(far):
        return far
    assert far.wait(30) == LEASES_NOT_KEPT
    return start_far(crew, proxy)


def test_a_worker_behind_a_network_that_swallows_everything_loses_its_jobs_and_gives_up_or_works_on(crew, proxy):
    far = start_far(crew, proxy)
    near = crew.start_worker("--concurrency", "4").wait_until_ready()

    cut_off_and_reconnect(crew, proxy, far, 300, with_a_cut=False)
    wait_until(
        lambda: far.says("was refused") or has_given_up(far), "what was held back is refused, if it comes at all"
    )
    far = start_again_where_it_gave_up(crew, proxy, far)
    cut_off_and_reconnect(crew, proxy, far, 300, with_a_cut=True)
    far = start_again_where_it_gave_up(crew, proxy, far)
    near.send(signal.SIGTERM)
    assert near.wait(30) == 0
    produce(crew, 20)
    crew.finish()

    crew.check()
    assert crew.one("select count(*) from effect where process_id = %s and what = 'done'", far.pid) >= 20


@pytest.mark.drill
def test_workers_are_frozen_and_cut_off_again_and_again_under_thousands_of_jobs(crew, proxy):
    zombies = [crew.start_worker("--concurrency", "4", "--no-maintenance") for _ in range(2)]
    crew.start_worker("--concurrency", "4")
    for worker in crew.processes:
        worker.wait_until_ready()
    far = start_far(crew, proxy)
    for turn in range(10):
        freeze_and_thaw(crew, zombies[turn % 2], 300)
        cut_off_and_reconnect(crew, proxy, far, 300, with_a_cut=bool(turn % 2))
        far = start_again_where_it_gave_up(crew, proxy, far)
    crew.finish(180)
    crew.check()


@pytest.mark.drill
def test_the_jobs_of_a_worker_frozen_in_the_middle_of_a_turn_are_taken_over_within_a_minute(crew):
    """To the server a pipeline without its end is active: of all time-outs only transaction_timeout ends it."""
    if connection.pg_version < 170_000:
        pytest.skip("transaction_timeout came with PostgreSQL 17; before, the rows stay locked until it goes on")
    zombie = crew.start_worker("--concurrency", "4", "--no-maintenance", crash=f"{crash_points.ACKNOWLEDGING}:1:STOP")
    crew.start_worker("--concurrency", "4")
    for worker in crew.processes:
        worker.wait_until_ready()
    produce(crew, 300)
    wait_until(lambda: crew.one("select count(*) from pgbroker.job") < 40, "the other worker does its part")
    worker_id = crew.one(_WORKER, zombie.pid)
    wait_until(lambda: not crew.one(_HELD, worker_id), "others have taken them over", 60)
    zombie.send(signal.SIGCONT)
    crew.finish()
    crew.check()
