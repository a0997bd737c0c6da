"""B037: SIGTERM while the answer to a claim's COMMIT is still on its way."""

import signal
from pathlib import Path

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import Execution, Job
from tests.cases.processes import start_through
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs
from tests.scenarios.history import check_history

#: Between two jobs the worker sends nothing: it is woken when there is one.
SELDOM = {"POLL_MIN_SECONDS": 60, "POLL_MAX_SECONDS": 60}


def is_pending(pid: int, number: signal.Signals) -> bool:
    """Whether the kernel still keeps this signal for the process."""
    masks = [line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "Pnd" in line]
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


@pytest.mark.parametrize("rounds", [1, pytest.param(25, marks=pytest.mark.drill)])
@pytest.mark.parametrize("answer", ["comes late", "never comes"])
def test_b037_what_was_committed_runs_or_goes_back_and_the_worker_ends_well(story, proxy, rounds, answer):
    for _ in range(rounds):
        with start_through(proxy, **SELDOM) as worker:
            first = story.enqueue(jobs.quick)
            wait_until(lambda first=first: first.status() is JobState.COMPLETED, "it works")
            held = proxy.hold_answers("worker")
            story.enqueue(jobs.quick)
            wait_until(Job.objects.filter(state=JobState.RUNNING).exists, "the server has committed the claim")

            worker.send(signal.SIGTERM)
            wait_until(lambda worker=worker: not is_pending(worker.pid, signal.SIGTERM), "the signal has arrived")
            assert worker.lives
            for flow in held:
                if answer == "never comes":
                    flow.close()
                flow.passes.set()

            assert worker.wait(20) == 0
            assert "Traceback" not in worker.output
        assert not Job.objects.filter(state=JobState.RUNNING).exists()
        assert not Execution.objects.filter(attempt__gt=1).exists()
        assert set(Job.objects.values_list("attempt", flat=True)) <= {0}
        check_history(story.job_ids)
        assert story.count("done") == Execution.objects.count()


def test_b037_a_worker_that_goes_while_the_database_is_silent_leaves_the_job_to_its_lease(story, proxy, start_process):
    """Its next connection is silent too, so nobody learns what was committed; another worker takes the job."""
    with start_through(proxy, **SELDOM, DRAIN_SECONDS=0.2) as worker:
        proxy.hold_answers("worker")
        proxy.refuse()
        handle = story.enqueue(jobs.quick)
        wait_until(Job.objects.filter(state=JobState.RUNNING).exists, "the server has committed the claim")
        worker.send(signal.SIGTERM)
        wait_until(lambda: not is_pending(worker.pid, signal.SIGTERM), "the signal has arrived")
        for flow in proxy.flows:
            flow.close()
        assert worker.wait(20) == 0
    assert Job.objects.filter(state=JobState.RUNNING).exists()

    start_process("--concurrency", "1")
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it comes back when its lease is over")
    assert story.count("done") == 1
