"""The server stops, fast and at once, and comes back under producers and workers; its backends are terminated."""

import os
import random
import signal
import time

import pytest

from tests.drills import jobs
from tests.drills.crew import Crew
from tests.maintenance.waiting import wait_until
from tests.shell.clones import Clone

_BACKENDS = """
select pg_terminate_backend(pid)
from pg_stat_activity
where datname = current_database() and application_name like 'pgbroker %%'
order by md5(pid::text || %s)
limit %s
"""


def stop(server: Clone, number: signal.Signals) -> None:
    """SIGINT: a fast shutdown, SIGQUIT: an immediate one, after which the server recovers from its log."""
    postmaster = server.server
    assert postmaster is not None
    os.kill(postmaster, number)
    wait_until(lambda: server.server is None, "the server is gone", 20)


def start_at_work(crew: Crew, count: int, workers: int) -> list:
    """Producers and workers in the middle of their work."""
    for _ in range(workers):
        crew.start_worker("--concurrency", "4")
    producers = [crew.start("drill_produce", "--count", str(count), "--milliseconds", "2") for _ in range(2)]
    wait_until(lambda: crew.one("select count(*) from pgbroker.archived_job") > 20, "they work", 30)
    return producers


def finish(crew: Crew, producers: list, seconds: float = 60) -> None:
    for producer in producers:
        assert producer.wait(seconds) == 0, producer.output
        assert producer.says("produced everything"), producer.output
        crew.job_ids += [int(line.split()[1]) for line in producer.lines if line.startswith("job ")]
    crew.finish(seconds)
    crew.check()


def test_a_server_that_stops_fast_and_then_at_once_and_comes_back_loses_no_confirmed_job(server_crew, server):
    producers = start_at_work(server_crew, 200, workers=2)
    workers = [process for process in server_crew.processes if process not in producers]

    def wait_until_all_say(event: str, times: int) -> None:
        wait_until(lambda: all(worker.output.count(event) >= times for worker in workers), f"all say {event}", 30)

    for times, number in enumerate((signal.SIGINT, signal.SIGQUIT), 1):
        stop(server, number)
        wait_until_all_say("worker.database_lost", times)
        server.attach()
        wait_until_all_say("worker.database_back", times)

    finish(server_crew, producers)
    assert len(server_crew.job_ids) == 400


def test_backends_that_are_terminated_under_load_lose_nothing(crew):
    worker = crew.start_worker("--concurrency", "4")
    worker.wait_until_ready()
    cuts = 0
    while cuts < 8:
        crew.job_ids += [jobs.work.enqueue(milliseconds=2).id for _ in range(40)]
        crew.one(_BACKENDS, str(cuts), 1 + cuts % 4)
        cuts += 1
    crew.finish()
    crew.check()
    assert worker.says("worker.database_back")
    assert crew.one("select max(attempt) from pgbroker.archived_job") == 1, "no lease was lost for it"


@pytest.mark.drill
def test_a_server_that_stops_again_and_again_under_load(server_crew, server):
    draw = random.Random(1)
    producers = start_at_work(server_crew, 3000, workers=3)
    for turn in range(8):
        stop(server, signal.SIGQUIT if turn % 2 else signal.SIGINT)
        if turn % 3 == 2:
            time.sleep(3)  # longer than the leases: an outage, not a wait for something
        server.attach()
        done = server_crew.one("select count(*) from pgbroker.archived_job")
        target = done + draw.randint(20, 400)
        wait_until(
            lambda target=target: server_crew.one("select count(*) from pgbroker.archived_job") >= target
            or not any(producer.lives for producer in producers),
            "they work again", 60,
        )  # fmt: skip
    finish(server_crew, producers, 240)


@pytest.mark.drill
def test_every_kind_of_backend_is_terminated_at_random_under_thousands_of_jobs(crew):
    draw = random.Random(2)
    for _ in range(3):
        crew.start_worker("--concurrency", "4")
    for turn in range(150):
        crew.job_ids += [jobs.work.enqueue(milliseconds=2).id for _ in range(40)]
        crew.one(_BACKENDS, str(turn), draw.randint(1, 6))
    crew.finish(180)
    crew.check()
