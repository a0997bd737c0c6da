"""A turn that is committed after its worker has reconnected: no pooler tells which server process to end."""

import os
import socket
import threading

import psycopg
import pytest

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verdicts import Verdict
from django_pgbroker.models import ArchivedJob, Execution, Job
from django_pgbroker.store.claim import claim_jobs
from django_pgbroker.worker import doubt
from django_pgbroker.worker.doubt import LateTurns, settle_doubt
from django_pgbroker.worker.fetcher import Look
from django_pgbroker.worker.options import WorkerOptions, parse_queues
from django_pgbroker.worker.session import open_session
from django_pgbroker.worker.turn import take_turn
from tests.maintenance.waiting import wait_until

WAITING = "select count(*) from pg_locks where not granted and relation = 'pgbroker.execution'::regclass"


@pytest.fixture
def noop(declare):
    return declare("tests.noop")(lambda: 1)


@pytest.fixture
def session(noop, behind):
    opened = open_session(WorkerOptions(parse_queues("default")))
    yield opened
    opened.end("test")


def claim_one(session):
    [claimed] = claim_jobs(
        session.gateway, queue_id=session.lanes[0].queue_id, job_type_ids=list(session.directory.job_types), batch=1,
        lease_seconds=60, worker_id=session.worker_id,
    )  # fmt: skip
    return claimed


@pytest.fixture
def lose_turn(session, rows):
    """Cuts the connection of a turn that waits for a lock in its acknowledge; its claims come behind that."""
    threads = []

    def lose(verdict):
        errors = []

        def take():
            try:
                take_turn(
                    session,
                    [verdict],
                    [Look(session.lanes[0], 10, 0, float("-inf"), promote_floor=None, is_woken=False)],
                )
            except psycopg.Error as error:
                errors.append(error)

        threads.append(threading.Thread(target=take))
        threads[-1].start()
        wait_until(lambda: rows.one(WAITING), "the turn waits")
        with socket.socket(fileno=os.dup(session.gateway.connection.fileno())) as cut:
            cut.shutdown(socket.SHUT_RDWR)
        threads[-1].join(10)
        assert errors

    return lose


@pytest.fixture
def locked(rows):
    """Locks the history until it is told to let go."""
    rows.run("begin")
    rows.run("lock table pgbroker.execution in exclusive mode")
    yield lambda: rows.run("commit")
    rows.gateway.connection.rollback()


def test_what_a_late_turn_has_claimed_is_found_by_a_later_look_and_goes_back_uncounted(
    session, noop, locked, lose_turn, monkeypatch
):
    monkeypatch.setattr(doubt, "_LATE_SECONDS", (0, 0))
    noop.enqueue()
    claimed = claim_one(session)
    second = noop.enqueue()
    verdict = Verdict(claimed.id, claimed.lease_token, Outcome.COMPLETED, JobState.COMPLETED)
    late = LateTurns()

    lose_turn(verdict)
    session.reconnect()
    assert settle_doubt(session, [claimed], [verdict]) == set(), "not yet"
    late.expect(session)
    late.settle(session, [claimed])
    assert second.status() is JobState.PENDING

    locked()
    wait_until(lambda: second.status() is JobState.RUNNING, "the turn is committed without its worker")
    late.settle(session, [claimed])
    assert second.status() is JobState.PENDING
    assert Job.objects.get(pk=second.id).attempt == 0

    assert take_turn(session, [verdict], ()).acknowledged.stale == {claimed.id}
    assert Execution.objects.filter(job_id=claimed.id).count() == 1
    assert ArchivedJob.objects.get(pk=claimed.id).state == JobState.COMPLETED


def test_looks_have_an_end_and_never_take_what_the_worker_holds(session, noop, monkeypatch):
    monkeypatch.setattr(doubt, "_LATE_SECONDS", (0,))
    held, stray = noop.enqueue(), None
    claimed = claim_one(session)
    late = LateTurns()
    session.reconnect()
    late.expect(session)
    late.settle(session, [claimed])
    assert held.status() is JobState.RUNNING

    stray = noop.enqueue()
    claim_one(session)
    late.settle(session, [claimed])
    assert stray.status() is JobState.RUNNING, "its lease brings it back"


def test_a_direct_connection_needs_no_later_look(noop, broker_database, monkeypatch):
    monkeypatch.setattr(doubt, "_LATE_SECONDS", (0,))
    direct = open_session(WorkerOptions(parse_queues("default")))
    try:
        stray = noop.enqueue()
        claim_one(direct)
        late = LateTurns()
        late.expect(direct)
        late.settle(direct, [])
        assert stray.status() is JobState.RUNNING
    finally:
        direct.end("test")
