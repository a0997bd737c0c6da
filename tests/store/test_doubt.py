"""A connection that was lost in a turn: what was recorded is known, what was granted is given back, nothing is lost."""

import psycopg
import pytest

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.store.reclaim import reclaim_jobs
from django_pgbroker.worker.doubt import settle_doubt
from django_pgbroker.worker.lane import Lane
from django_pgbroker.worker.turn import take_turn
from tests.store.jobs import completed, verdict


def cut(shop, session):
    """End the connection of the worker from outside."""
    assert shop.rows.one("select pg_terminate_backend(%s::int, 10000)", session.gateway.connection.info.backend_pid)


def look(shop, batch):
    return Lane("default", 1, shop.queue, 0.05, 5.0, job_type_ids=f"{{{shop.job_type}}}").look(batch, 0.0)


def test_a_commit_whose_answer_was_lost_is_found_and_its_claims_are_given_back(session, shop):
    shop.fill(6)
    done, failed, running = shop.claim(session.gateway, 3, worker_id=session.worker_id)
    verdicts = [completed(done), verdict(failed, Outcome.FAILED, JobState.SCHEDULED)]
    granted = take_turn(session, verdicts, [look(shop, 2)]).found[0].claims  # the worker never hears of these
    cut(shop, session)
    session.reconnect()

    held = {claim.id: claim for claim in (done, failed, running)}
    assert settle_doubt(session, list(held.values()), verdicts) == {done.id, failed.id}

    assert shop.rows.state_of(running.id) is JobState.RUNNING
    for claim in granted:
        row = shop.live(claim.id)
        assert (row["state"], row["attempt"], row["deaths"], row["worker_id"]) == (JobState.PENDING, 0, 0, None)
        assert shop.executions(claim.id) == []
    again = shop.claim(session.gateway, 10, worker_id=session.worker_id)
    assert {claim.id for claim in granted} < {claim.id for claim in again}


def test_a_turn_that_was_cut_before_its_commit_recorded_nothing_and_can_be_sent_again(session, shop, gate):
    shop.fill(3)
    claim, other = shop.claim(session.gateway, 2, worker_id=session.worker_id)
    verdicts = [completed(claim)]
    with gate.held(session.gateway, lambda: take_turn(session, verdicts, [look(shop, 1)])) as answer:
        cut(shop, session)
    with pytest.raises(psycopg.OperationalError):
        answer.result()
    session.reconnect()

    assert settle_doubt(session, [claim, other], verdicts) == set()

    assert shop.rows.one("select count(*) from pgbroker.job where state = 1") == 2
    assert not any(take_turn(session, verdicts, []).acknowledged)
    assert shop.rows.state_of(claim.id) is JobState.COMPLETED


def test_without_any_doubt_nothing_is_released(session, shop):
    shop.fill(2)
    claims = shop.claim(session.gateway, 2, worker_id=session.worker_id)
    before = shop.everything()
    assert settle_doubt(session, claims, []) == set()
    assert shop.everything() == before


def test_claims_of_other_workers_are_left_alone(session, rival, shop):
    shop.job()
    [claim] = shop.claim(rival, worker_id=session.worker_id + 1)
    settle_doubt(session, [], [])
    assert shop.live(claim.id)["lease_token"] == claim.lease_token


def test_a_job_that_was_taken_back_meanwhile_is_not_taken_for_recorded(session, rival, shop):
    """The execution of the loss bears the same token."""
    claim = shop.claim_one(session.gateway)
    shop.lapse(claim)
    assert len(reclaim_jobs(rival, 10)) == 1
    assert settle_doubt(session, [claim], [completed(claim)]) == set()
    assert take_turn(session, [completed(claim)], []).acknowledged.stale == {claim.id}


def test_a_claim_granted_twice_over_counts_as_mine_only_with_the_token_that_i_hold(session, shop):
    """The same job, claimed again by a turn whose answer was lost: its newer token is a stray."""
    shop.job()
    [claim] = shop.claim(session.gateway, worker_id=session.worker_id)
    take_turn(session, [verdict(claim, Outcome.RELEASED, JobState.PENDING)], [look(shop, 1)])
    assert shop.live(claim.id)["lease_token"] > claim.lease_token
    settle_doubt(session, [claim], [])
    row = shop.live(claim.id)
    assert (row["state"], row["attempt"]) == (JobState.PENDING, 0)
