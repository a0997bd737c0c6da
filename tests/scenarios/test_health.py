"""Probes over HTTP while a worker starts, works and drains; with several processes, and with a port that is taken."""

import json
import re
import signal
import socket
from http.client import HTTPConnection

import pytest

from django_pgbroker.domain.states import JobState
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs


def ask(port, path):
    """The status and the body; None while nobody answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except ConnectionError:
        return None
    finally:
        connection.close()


def ports_of(worker):
    return [int(port) for port in re.findall(r"health: http://127\.0\.0\.1:(\d+)/livez", worker.output)]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_probes_are_answered_from_the_start_to_the_end_of_the_drain(start, story):
    handle = story.enqueue(jobs.gated, gate="open")
    worker = start("--concurrency", "1", "--health-port", "0")
    [port] = ports_of(worker)
    wait_until(lambda: story.count("begun"), "it runs")
    wait_until(lambda: ask(port, "/readyz")[0] == 200, "it is ready")

    worker.send(signal.SIGTERM)
    wait_until(lambda: worker.says("worker.draining"), "it drains")
    status, body = ask(port, "/readyz")
    assert (status, body["reason"], body["running"]) == (503, "draining", 1)
    status, body = ask(port, "/livez")
    assert (status, body["draining"]) == (200, True)
    assert body["worker_id"]
    story.open("open")

    assert worker.wait() == 0
    assert handle.status() is JobState.COMPLETED
    assert ask(port, "/livez") is None


@pytest.mark.parametrize("processes", [1, 2])
def test_a_port_that_is_taken_is_told_at_the_start(start, processes):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        arguments = [] if processes == 1 else ["--processes", "2"]
        worker = start("--health-port", str(port), *arguments, wait=False)
        assert worker.wait(60) == 1
    assert f"--health-port: 127.0.0.1 port {port} cannot be had: Address already in use" in worker.output
    assert "Traceback" not in worker.output
    assert not worker.says("worker.started")


def test_each_of_several_processes_has_a_port_of_its_own(start):
    first = free_port()
    supervisor = start("--processes", "2", "--health-port", str(first), wait=False).wait_until_ready(2)
    wait_until(lambda: sorted(ports_of(supervisor)) == [first, first + 1], "both say where")
    workers = {ask(port, "/livez")[1]["worker_id"] for port in (first, first + 1)}
    assert len(workers) == 2
    supervisor.send(signal.SIGTERM)
    assert supervisor.wait() == 0
