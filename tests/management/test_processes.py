"""``pgbroker_worker --processes`` at its start; how the processes stop is told by tests/scenarios."""

import re
import signal

import pytest
from django.core.management import CommandError, call_command

from tests.maintenance.waiting import wait_until
from tests.scenarios.processes import ManageProcess, database_of_this_run


@pytest.fixture
def start(broker_database):
    started = []

    def start(*arguments, **more):
        started.append(ManageProcess(("pgbroker_worker", *arguments), {}, database_of_this_run(), more))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.mark.parametrize("number", [0, 65, -1])
def test_an_impossible_number_is_refused(broker_database, number):
    with pytest.raises(CommandError, match=f"--processes must be from 1 to 64, not {number}"):
        call_command("pgbroker_worker", f"--processes={number}")


def test_python_code_that_calls_the_command_is_told_to_start_a_process(broker_database):
    with pytest.raises(CommandError, match=r"run manage.py pgbroker_worker --processes N, not call_command\(\)"):
        call_command("pgbroker_worker", "--processes=2")


def test_a_process_that_cannot_start_is_tried_again_with_a_growing_wait(start):
    supervisor = start("--processes", "1", DJANGO_SETTINGS_MODULE="tests.management.broken_child")
    waits = []

    def has_tried_three_times():
        waits[:] = map(float, re.findall(r"status 1; another one is started in ([\d.]+) s", supervisor.output))
        return len(waits) >= 3

    wait_until(has_tried_three_times, "three tries", seconds=60)
    for wait, longest in zip(waits, (1, 2, 4), strict=False):
        assert longest / 2 <= wait <= longest
    assert supervisor.says("broken for worker processes")

    supervisor.send(signal.SIGTERM)
    assert supervisor.wait() == 1
    assert not supervisor.says("worker.started")


def test_it_says_what_it_starts(start):
    supervisor = start("--processes", "2", "--concurrency", "3", "--queues", "a,b", "--strict", "--until-empty")
    assert supervisor.wait(60) == 0
    first = supervisor.lines[0]
    # each process: turns, heartbeat, announcer, LISTEN and three slots; and the duties of the first two
    assert ": 2 processes, each 3 slots on a, then b. At most 16 connections; the server allows " in first
    assert sum("slots on" in line for line in supervisor.lines) == 1


def test_where_setproctitle_is_installed_the_title_of_each_process_says_what_it_does(start, tmp_path):
    """The package itself is not needed here: what it is given is told instead."""
    (tmp_path / "setproctitle.py").write_text("def setproctitle(title):\n    print('TITLE', title, flush=True)\n")
    supervisor = start("--processes", "2", "--concurrency", "3", "--queues", "a,b", PYTHONPATH=f"{tmp_path}")
    for title in ("supervisor: 2 workers", "worker 1/2: a,b: 0 of 3 running", "worker 2/2: a,b: 0 of 3 running"):
        wait_until(lambda title=title: supervisor.says(f"TITLE pgbroker {title}"), title, seconds=60)
    supervisor.send(signal.SIGTERM)
    assert supervisor.wait() == 0
