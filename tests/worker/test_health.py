"""What /livez and /readyz answer."""

import json
import socket
import threading
import time
from http.client import HTTPConnection

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.worker.health import HealthServer
from django_pgbroker.worker.vitals import Vitals
from tests.maintenance.waiting import wait_until


class Keeper:
    """What the vitals ask of the lease keeper."""

    is_trust_over = False
    seconds_since_renewal = 0.5


@pytest.fixture
def serve():
    """Starts a server for some vitals and asks it."""
    servers = []

    def serve(vitals):
        server = HealthServer(vitals, "127.0.0.1", 0)
        server.start()
        servers.append(server)

        def ask(path, method="GET"):
            connection = HTTPConnection("127.0.0.1", server.port, timeout=10)
            connection.request(method, path)
            answer = connection.getresponse()
            body = answer.read()
            connection.close()
            return answer.status, json.loads(body) if body else None

        ask.port = server.port
        return ask

    yield serve
    for server in servers:
        server.stop()


@pytest.fixture
def vitals():
    return Vitals("web1:7", is_draining=lambda: False, is_database_away=lambda: False)


def attach(vitals, running=frozenset(), keeper=None):
    vitals.attach(3, keeper or Keeper(), lambda: set(running))


def test_a_worker_that_works_is_alive_and_ready(serve, vitals):
    attach(vitals, {1, 2})
    vitals.note_turn()
    ask = serve(vitals)
    status, body = ask("/livez")
    assert (status, body["status"], body["worker"], body["worker_id"], body["running"]) == (200, "ok", "web1:7", 3, 2)
    assert (body["draining"], body["seconds_since_last_renewal"]) == (False, 0.5)
    assert 0 <= body["seconds_since_last_turn"] < 5
    assert ask("/readyz?verbose")[0] == 200
    assert ask("/livez", "HEAD") == (200, None)


def test_one_that_waits_for_its_database_at_the_start_lives_and_is_not_ready(serve, vitals):
    ask = serve(vitals)
    assert ask("/livez")[0] == 200
    status, body = ask("/readyz")
    assert (status, body["status"], body["reason"], body["worker_id"]) == (503, "failing", "not registered yet", None)


def test_one_whose_main_loop_is_stuck_is_to_be_killed(serve, vitals):
    attach(vitals)
    vitals.loop_limit_seconds = 0.0
    time.sleep(0.001)
    status, body = serve(vitals)("/livez")
    assert (status, body["reason"]) == (503, "the main loop has not moved for 0 s")
    vitals.loop_limit_seconds = 60.0
    vitals.note_move()
    assert vitals.find_deadly() is None


def test_leases_that_cannot_be_renewed_are_deadly_only_while_something_runs(serve, vitals):
    keeper = Keeper()
    keeper.is_trust_over = True
    attach(vitals, {1}, keeper)
    ask = serve(vitals)
    assert ask("/livez")[1]["reason"] == "the leases of running jobs cannot be renewed"
    attach(vitals, (), keeper)
    assert ask("/livez")[0] == 200
    assert ask("/readyz")[1]["reason"] == "the database does not answer"


def test_other_paths_and_methods_are_refused_in_json(serve, vitals):
    ask = serve(vitals)
    assert ask("/")[0] == 404
    assert ask("/admin")[1] == {"status": "not found", "paths": ["/livez", "/readyz"]}
    assert ask("/livez", "POST") == (501, {"status": "not implemented"})
    assert ask("/" + "x" * 70_000)[0] == 414


def test_nonsense_and_silence_do_not_hold_the_server_up(serve, vitals):
    ask = serve(vitals)
    silent = socket.create_connection(("127.0.0.1", ask.port))
    with socket.create_connection(("127.0.0.1", ask.port)) as rude:
        rude.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
        assert b"bad request" in rude.recv(1000)
    assert ask("/livez")[0] == 200
    silent.close()


def test_a_real_worker_answers_through_its_whole_drain(declare, start, serve, gate):
    @declare()
    def wait():
        gate.wait()

    handle = wait.enqueue()
    worker = start()
    ask = serve(worker.worker.vitals)
    gate.wait_until_arrived()
    wait_until(lambda: ask("/readyz")[0] == 200, "it is ready")
    assert ask("/livez")[1]["running"] == 1

    worker.worker.stopping.request_drain()
    status, body = ask("/readyz")
    assert (status, body["reason"], body["draining"], body["running"]) == (503, "draining", True, 1)
    assert ask("/livez")[0] == 200

    gate.open()
    worker.join()
    assert handle.status() is JobState.COMPLETED


def test_a_lost_database_makes_it_unready_and_not_dead(declare, start, serve, rival, rows):
    worker = start()
    ask = serve(worker.worker.vitals)
    wait_until(lambda: ask("/readyz")[0] == 200, "it is ready")
    stuck = threading.Event()
    reasons = set()

    def watch():
        while not stuck.wait(0.001):
            reasons.add(worker.worker.vitals.find_unready())
            assert worker.worker.vitals.find_deadly() is None

    watcher = threading.Thread(target=watch)
    watcher.start()
    rows.run(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name like 'pgbroker worker%%' and datname = current_database()"
    )
    wait_until(lambda: "the database does not answer" in reasons, "it is noticed")
    wait_until(lambda: ask("/readyz")[0] == 200, "it is ready again")
    stuck.set()
    watcher.join()
