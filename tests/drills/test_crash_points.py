"""Workers and a reaper that are killed at each step, while jobs keep coming."""

import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.drills import crash_points, jobs
from tests.drills.crew import Crew
from tests.maintenance.waiting import wait_until

#: How a claim ended and what its handler had told before, for the lost claims of one process.
LOST = """
select bool_or(what = 'begun') is true, bool_or(what = 'done') is true
from pgbroker.execution as run
left join effect on effect.job_id = run.job_id and effect.lease_token = run.lease_token
where run.outcome = 6 and run.worker_id = (select id from pgbroker.worker where process_id = %s)
group by run.job_id, run.lease_token
"""


def produce_until(crew: Crew, is_reached: Callable[[], object], what: str, most: int = 20_000) -> None:
    while not is_reached():
        crew.job_ids.append(jobs.work.enqueue(milliseconds=1).id)
        assert len(crew.job_ids) < most, f"not within {most} jobs: {what}"


def lost_claims(crew: Crew, pid: int) -> set[tuple[bool, bool]]:
    """Whether the handler had begun, and whether it was done, of each claim that a dead process left behind."""
    with crew.connect() as connection:
        return set(connection.execute(LOST, [pid]).fetchall())


def test_workers_killed_at_each_step_lose_nothing_and_complete_nothing_twice(crew):
    doomed = {
        point: crew.start_worker("--concurrency", "2", "--no-maintenance", crash=f"{point}:3")
        for point in crash_points.WORKER_POINTS
    }
    for worker in doomed.values():
        wait_until(lambda worker=worker: worker.says("worker.started"), "it is ready", 30)

    produce_until(crew, lambda: not any(worker.lives for worker in doomed.values()), "all have died")
    left = crew.one("select count(*) from pgbroker.job where state = 1")
    crew.start_worker("--concurrency", "4").wait_until_ready()
    crew.finish()

    crew.check()
    assert left, "they left claims behind"
    assert {worker.wait() for worker in doomed.values()} == {-signal.SIGKILL}
    begun, done = (True, False), (True, True)
    assert (False, False) in lost_claims(crew, doomed[crash_points.CLAIMED].pid)
    assert begun in lost_claims(crew, doomed[crash_points.HANDLER].pid)
    assert done in lost_claims(crew, doomed[crash_points.JUDGED].pid)
    assert done in lost_claims(crew, doomed[crash_points.ACKNOWLEDGING].pid)


def test_a_reaper_killed_in_mid_sweep_has_taken_nothing_back(crew):
    doomed = crew.start_worker("--concurrency", "4", "--no-maintenance", crash=f"{crash_points.HANDLER}:1")
    wait_until(lambda: doomed.says("worker.started"), "it is ready", 30)
    produce_until(crew, lambda: not doomed.lives, "it has died")
    running = crew.one("select count(*) from pgbroker.job where state = 1")
    reaper = crew.start("pgbroker_reaper", crash=f"{crash_points.SWEEPING}:1")

    assert reaper.wait(30) == -signal.SIGKILL, reaper.output
    assert crew.one("select count(*) from pgbroker.job where state = 1") == running > 0
    assert crew.one("select count(*) from pgbroker.execution where outcome = 6") == 0

    crew.start_worker("--concurrency", "4").wait_until_ready()
    crew.finish()
    crew.check()
    assert crew.one("select count(*) from pgbroker.execution where outcome = 6") == running


def test_a_killed_child_fails_its_job_and_a_child_left_behind_holds_nothing_up(crew):
    handles = [job.enqueue() for job in (jobs.lose_a_child, jobs.leave_a_child)]
    crew.job_ids += [handle.id for handle in handles]
    workers = [crew.start_worker("--concurrency", "1") for _ in range(2)]
    try:
        crew.finish()
        assert sorted(worker.wait() for worker in workers) == [-signal.SIGKILL, 0]
        child = int(crew.one("select what from effect where what like 'child %'").split()[1])
        os.kill(child, 0)
    finally:
        for process in crew.one("select array_agg(what) from effect where what like 'child %'") or ():
            with suppress(ProcessLookupError):
                os.kill(int(process.split()[1]), signal.SIGKILL)
    crew.check()
    outcomes = "select array_agg(outcome order by lease_token) from pgbroker.execution where job_id = %s"
    bereft, orphaned = (crew.one(outcomes, handle.id) for handle in handles)
    # its second claim may have waited in the worker that died of the other job
    assert bereft in ([2, 1], [2, 6, 1])
    assert orphaned == [6, 1]


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point == crash_points.JUDGED else pytest.mark.drill)
              for point in crash_points.WORKER_POINTS]
)  # fmt: skip
def test_processes_of_one_supervisor_that_die_again_and_again_at_one_step_lose_nothing(crew, point):
    """Each of them dies at its sixth time there and is started again, ever later."""
    crew.job_ids += [jobs.work.enqueue(milliseconds=20).id for _ in range(60)]
    supervisor = crew.start_worker("--concurrency", "2", "--processes", "3", crash=f"{point}:6")
    wait_until(lambda: not crew.one("select count(*) from pgbroker.job"), "every job is finished", 150)
    supervisor.send(signal.SIGTERM)
    # one that was just about to be started again ended by its signal
    assert supervisor.wait(30) in {0, 128 + signal.SIGKILL}, supervisor.output
    assert supervisor.output.count("supervisor.worker_restarted") >= 3
    crew.check()


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(4))
def test_thousands_of_jobs_under_workers_that_die_at_random_points(crew, seed):
    draw = random.Random(seed)
    for _ in range(8000):
        crew.job_ids.append(jobs.work.enqueue(milliseconds=draw.choice([0, 0, 0, 5])).id)
    crew.start("pgbroker_reaper")
    deaths = 0
    living = []

    def is_over() -> bool:
        nonlocal deaths, living
        alive = [worker for worker in living if worker.lives]
        deaths += len(living) - len(alive)
        while len(alive) < 3:
            point = draw.choice(crash_points.POINTS)
            crash = f"{point}:{draw.randint(1, 8)}"
            alive.append(crew.start_worker("--concurrency", str(draw.randint(1, 8)), crash=crash))
        living = alive
        return not crew.one("select 1 from pgbroker.job where state <> 1 limit 1")

    wait_until(is_over, "all jobs are claimed", 420)
    for worker in living:
        worker.kill()
    crew.start_worker("--concurrency", "8").wait_until_ready()
    crew.finish(90)
    crew.check()
    assert deaths >= 5
