"""After a commit in doubt: what was recorded is not recorded twice, what was granted is given back."""

import pytest

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verdicts import Verdict
from django_pgbroker.models import Execution, Job
from django_pgbroker.store.claim import claim_jobs
from django_pgbroker.worker.doubt import settle_doubt
from django_pgbroker.worker.options import WorkerOptions, parse_queues
from django_pgbroker.worker.session import open_session
from django_pgbroker.worker.turn import acknowledge_apart, take_turn


@pytest.fixture
def session(broker_database, noop):
    opened = open_session(WorkerOptions(parse_queues("default")))
    yield opened
    opened.end("test")


@pytest.fixture
def noop(declare):
    return declare("tests.noop")(lambda: 1)


def claim(session, batch=10):
    return claim_jobs(
        session.gateway, queue_id=session.lanes[0].queue_id, job_type_ids=list(session.directory.job_types),
        batch=batch, lease_seconds=60, worker_id=session.worker_id,
    )  # fmt: skip


def completed(claimed, **columns):
    return Verdict(claimed.id, claimed.lease_token, Outcome.COMPLETED, JobState.COMPLETED, **columns)


def test_verdicts_that_were_recorded_before_the_loss_are_known_and_others_are_not(session, noop):
    handles = [noop.enqueue() for _ in range(2)]
    first, second = claim(session)
    take_turn(session, [completed(first)], ())
    session.reconnect()
    held = {each.id: each for each in (first, second)}

    assert settle_doubt(session, list(held.values()), [completed(first), completed(second)]) == {first.id}

    assert {handle.status() for handle in handles} == {JobState.COMPLETED, JobState.RUNNING}
    assert Execution.objects.count() == 1


def test_claims_that_were_granted_and_never_heard_of_go_back_uncounted(session, noop):
    handles = [noop.enqueue() for _ in range(3)]
    heard, *unheard = claim(session)
    session.reconnect()

    assert settle_doubt(session, [heard], []) == set()

    assert Job.objects.get(pk=heard.id).state == JobState.RUNNING
    given_back = Job.objects.filter(pk__in=[each.id for each in unheard])
    assert set(given_back.values_list("state", "attempt")) == {(JobState.PENDING, 0)}
    assert Execution.objects.count() == 0
    assert len(handles) == 3


def test_the_claims_of_another_worker_are_not_touched(session, noop):
    noop.enqueue()
    other = open_session(session.options)
    [theirs] = claim(other)
    settle_doubt(session, [], [])
    assert Job.objects.get(pk=theirs.id).state == JobState.RUNNING
    other.end("test")


def test_one_verdict_that_cannot_be_stored_is_recorded_bare_and_its_neighbours_whole(session, noop, caplog):
    handles = [noop.enqueue() for _ in range(5)]
    claims = claim(session)
    verdicts = [completed(each, result='"fine"') for each in claims]
    verdicts[2] = completed(claims[2], result='{"no": json')

    report = acknowledge_apart(session, verdicts)

    assert report.acknowledged.stale == report.acknowledged.busy == frozenset()
    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    results = {handle.id: handle for handle in handles}
    assert [results[each.id].result() for each in (*claims[:2], *claims[3:])] == ["fine"] * 4
    assert Execution.objects.get(job_id=claims[2].id).reason == "result or error not stored: SQLSTATE 22P02"
    assert "verdict.not_stored" in caplog.text
