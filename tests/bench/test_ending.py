"""A bench that is ended, and one whose worker dies, leave neither a process nor a database."""

import os
import signal

import pytest
from django.db import connection

from tests.bench.processes import (
    check_nothing_is_left,
    count_sessions,
    processes_of_session,
    scratch_name,
    start_bench,
)
from tests.maintenance.waiting import wait_until

# In one transaction pg_stat_activity would never change.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bench(request):
    """A long run in full swing, of churn where a test names nothing else."""
    process = start_bench(getattr(request, "param", "churn"), "--seconds", "300")
    try:
        wait_until(lambda: count_sessions(process.pid, "heartbeat") == 1, "its worker is there", seconds=60)
        yield process
    finally:
        for process_id in processes_of_session(process.pid):
            os.kill(process_id, signal.SIGKILL)
        process.communicate()
        with connection.cursor() as cursor:
            cursor.execute(f"drop database if exists {scratch_name(process.pid)} with (force)")


def test_ctrl_c_ends_everything(bench):
    os.killpg(bench.pid, signal.SIGINT)
    output, errors = bench.communicate(timeout=60)
    assert bench.returncode == 130, errors
    assert output.splitlines()[-1] == "stopped; the scratch database is gone"
    assert "Traceback" not in errors
    check_nothing_is_left(bench.pid)


def test_sigterm_ends_everything_too_and_a_second_one_changes_nothing(bench):
    bench.terminate()
    bench.terminate()
    _, errors = bench.communicate(timeout=60)
    assert bench.returncode == 130, errors
    check_nothing_is_left(bench.pid)


def test_a_worker_that_dies_ends_the_bench_with_a_reason(bench):
    for process_id in worker_processes(bench.pid):
        os.kill(process_id, signal.SIGKILL)
    _, errors = bench.communicate(timeout=60)
    assert bench.returncode == 1
    assert "a worker process ended by itself (exit status -9)" in errors
    check_nothing_is_left(bench.pid)


# a worker that tells nothing is not ended by a broken pipe
@pytest.mark.parametrize("bench", ["idle"], indirect=True)
def test_workers_end_when_the_bench_is_killed(bench):
    assert len(worker_processes(bench.pid)) == 1
    bench.kill()
    bench.wait()
    wait_until(lambda: not processes_of_session(bench.pid), "nobody works for a dead bench")
    wait_until(lambda: not count_sessions(bench.pid, "worker"), "its session is over")


def worker_processes(session_id):
    """Those that run a worker; the others are the bench and the tracker of Python's multiprocessing."""
    found = []
    for process_id in processes_of_session(session_id):
        with open(f"/proc/{process_id}/cmdline") as file:  # noqa: PTH123 - no file of ours
            if "spawn_main" in file.read():
                found.append(process_id)
    return found
