"""What a job remembers over its attempts: on the handler's connection, fenced, and gone with the job."""

import threading

import pytest
from django.db import DatabaseError, connection, transaction

from django_pgbroker.domain.progress import ProgressReport
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.store.acknowledge import acknowledge_jobs, read_ack_report
from django_pgbroker.store.expire import expire_jobs
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.progress import send_record_progress
from django_pgbroker.store.reclaim import reclaim_jobs
from django_pgbroker.store.renew import renew_leases
from django_pgbroker.store.steps import CURSOR, find_steps, record_step
from tests.maintenance.waiting import wait_until
from tests.store.jobs import completed, verdict

NOTHING = (frozenset(), frozenset())


@pytest.fixture
def caller(broker_database) -> CallerGateway:
    """The connection of a handler."""
    return CallerGateway()


def remember(caller, claim, name="load", result="7"):
    return record_step(caller, claim.id, claim.lease_token, name, result)


def mark(gateway, claim):
    assert (
        read_ack_report(send_record_progress(gateway, [ProgressReport(claim.id, claim.lease_token, None)])) == NOTHING
    )


def test_steps_and_cursor_are_found_again_with_their_results(gateway, caller, shop):
    claim, other = shop.claim_one(gateway), shop.claim_one(gateway)
    assert remember(caller, claim, "load", '{"rows": 3}')
    assert remember(caller, claim, 'an "odd" name', "null")
    assert remember(caller, claim, CURSOR, "41")
    assert remember(caller, claim, CURSOR, "42")
    assert remember(caller, other, "load", "1")
    assert find_steps(caller, claim.id) == {"load": '{"rows": 3}', 'an "odd" name': "null", CURSOR: "42"}


def test_a_stale_claim_remembers_nothing_and_is_told(gateway, rival, caller, shop):
    old = shop.claim_one(gateway)
    assert remember(caller, old, "load", "1")
    shop.lapse(old)
    assert len(reclaim_jobs(rival, 10)) == 1
    assert not remember(caller, old, "send", "1")
    shop.rows.run("update pgbroker.job set state = 0")
    [new] = shop.claim(rival)
    assert not remember(caller, old, "load", "666")
    assert not remember(caller, old, CURSOR, "666")
    assert find_steps(caller, old.id) == {"load": "1"}
    assert remember(caller, new, "send", "2")
    assert find_steps(caller, old.id) == {"load": "1", "send": "2"}


def test_a_step_is_remembered_if_the_transaction_of_the_handler_commits(gateway, caller, shop):
    claim = shop.claim_one(gateway)
    with transaction.atomic():
        assert remember(caller, claim, "undone")
        transaction.set_rollback(True)
    with transaction.atomic():
        assert remember(caller, claim, "done")
    assert set(find_steps(caller, claim.id)) == {"done"}


def test_a_step_that_cannot_be_stored_leaves_the_transaction_of_the_handler_as_it_was(gateway, caller, shop):
    claim = shop.claim_one(gateway)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("create temporary table mine (id int) on commit drop")
        with pytest.raises(DatabaseError):
            remember(caller, claim, "x" * 201)
        cursor.execute("insert into mine values (1)")
        assert remember(caller, claim, "load")
    assert set(find_steps(caller, claim.id)) == {"load"}


def test_while_a_step_is_not_committed_the_lease_is_renewed_and_nobody_takes_the_job_away(gateway, rival, caller, shop):
    """Otherwise what it did could be committed after another worker has done it again."""
    claim = shop.claim_one(gateway)
    with transaction.atomic():
        assert remember(caller, claim)
        assert renew_leases(gateway, [claim], {claim.id}, 60) == (frozenset(),) * 3
        mark(gateway, claim)
        shop.rows.run("update pgbroker.job set cancel_requested_at = now() where id = %s", claim.id)
        shop.rows.run("update pgbroker.job set cancel_requested_at = null where id = %s", claim.id)
        shop.lapse(claim)
        assert reclaim_jobs(rival, 10) == []
        assert acknowledge_jobs(gateway, [completed(claim)]).busy == {claim.id}
    assert acknowledge_jobs(gateway, [completed(claim)]) == NOTHING
    assert find_steps(caller, claim.id) == {}


def test_a_step_waits_for_a_reclaim_under_way_and_is_then_refused(gateway, rival, caller, shop):
    claim = shop.claim_one(gateway)
    shop.lapse(claim)
    answers = []

    def try_to_remember():
        answers.append(remember(CallerGateway(), claim))
        connection.close()

    thread = threading.Thread(target=try_to_remember)
    with rival.transaction():
        assert len(reclaim_jobs(rival, 10)) == 1
        thread.start()
        waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%%job_step as step%%'"
        wait_until(lambda: shop.rows.one(waiting), "the step waits")
    thread.join(10)
    assert answers == [False]
    assert find_steps(caller, claim.id) == {}


@pytest.mark.parametrize(
    ("ending", "is_kept"),
    [
        ((Outcome.COMPLETED, JobState.COMPLETED), False),
        ((Outcome.CANCELLED, JobState.CANCELLED), False),
        ((Outcome.FAILED, JobState.DEAD), True),
        ((Outcome.FAILED, JobState.SCHEDULED), True),
        ((Outcome.INTERRUPTED, JobState.PENDING), True),
        ((Outcome.LOST, JobState.SCHEDULED), True),
    ],
)
def test_steps_go_with_the_job_and_stay_for_another_attempt_or_a_redrive(gateway, caller, shop, ending, is_kept):
    claim, other = shop.claim_one(gateway), shop.claim_one(gateway)
    for each in (claim, other):
        mark(gateway, each)
        remember(caller, each)
        remember(caller, each, CURSOR, "42")
    acknowledge_jobs(gateway, [verdict(claim, *ending)])
    assert bool(find_steps(caller, claim.id)) is is_kept
    assert len(find_steps(caller, other.id)) == 2


def test_the_steps_of_a_job_that_expires_between_attempts_go_with_it(gateway, caller, shop):
    claim = shop.claim_one(gateway)
    mark(gateway, claim)
    remember(caller, claim)
    acknowledge_jobs(gateway, [verdict(claim, Outcome.FAILED, JobState.SCHEDULED)])
    shop.rows.run("update pgbroker.job set expires_at = now() - interval '1 s'")
    assert expire_jobs(gateway, 10) == [claim.id]
    assert find_steps(caller, claim.id) == {}
