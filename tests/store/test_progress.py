"""The newest progress of running jobs: fenced, beside the hot row, and moved to the archive when the job ends."""

import sys

import pytest

from django_pgbroker.domain.progress import Progress, ProgressReport, make_progress
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.store.acknowledge import acknowledge_jobs, read_ack_report
from django_pgbroker.store.expire import expire_jobs
from django_pgbroker.store.progress import send_record_progress
from django_pgbroker.store.reclaim import reclaim_jobs
from django_pgbroker.store.renew import renew_leases
from tests.store.jobs import completed, verdict

NOTHING = (frozenset(), frozenset())


def report(claim, done=1.0, total=None, stage=None):
    return ProgressReport(claim.id, claim.lease_token, Progress(done, total, stage))


def record(gateway, *reports):
    return read_ack_report(send_record_progress(gateway, reports))


def stored(shop):
    """Progress by job."""
    found = shop.rows.gateway.connection.execute("select job_id, done, total, stage from pgbroker.job_progress")
    return {job_id: tuple(progress) for job_id, *progress in found}


def test_the_newest_progress_of_many_jobs_is_stored_in_one_statement(gateway, shop):
    shop.fill(3)
    first, second, third = shop.claim(gateway)
    assert record(gateway, report(second, 5, 10, "load"), report(first, 1)) == NOTHING
    assert record(gateway, report(third, 0, 3), report(second, 6.5, 10, 'a "quoted" \\ stage')) == NOTHING
    assert stored(shop) == {
        first.id: (1, None, None), second.id: (6.5, 10, 'a "quoted" \\ stage'), third.id: (0, 3, None),
    }  # fmt: skip


def test_what_can_be_told_can_be_stored(gateway, shop):
    claim = shop.claim_one(gateway)
    for told in (
        make_progress(sys.float_info.max, 5e-324, "\x00\ud800"), make_progress(10**300, 10**301), make_progress(-0.0),
    ):  # fmt: skip
        assert record(gateway, ProgressReport(claim.id, claim.lease_token, told)) == NOTHING
        assert stored(shop)[claim.id] == told
        assert acknowledge_jobs(gateway, [verdict(claim, Outcome.INTERRUPTED, JobState.PENDING)]) == NOTHING
        [claim] = shop.claim(gateway)
    record(gateway, report(claim, 1e308, 1.7e308))
    assert acknowledge_jobs(gateway, [completed(claim)]) == NOTHING
    assert float(shop.archived(claim.id)["progress"]["done"]) == 1.7e308


def test_the_hot_row_is_written_once_a_job(gateway, shop):
    claim = shop.claim_one(gateway)
    place = "select ctid::text, is_tracked from pgbroker.job where id = %s"
    record(gateway, report(claim, 1))
    at_first = gateway.connection.execute(place, [claim.id]).fetchone()
    for done in range(2, 5):
        record(gateway, report(claim, done))
    assert gateway.connection.execute(place, [claim.id]).fetchone() == at_first
    assert at_first[1] is True


def test_a_mark_alone_stores_no_progress(gateway, shop):
    claim = shop.claim_one(gateway)
    assert record(gateway, ProgressReport(claim.id, claim.lease_token, None)) == NOTHING
    assert stored(shop) == {}
    assert shop.live(claim.id)["is_tracked"] is True


def test_a_stale_claim_stores_nothing_and_is_told(gateway, rival, shop):
    old = shop.claim_one(gateway)
    record(gateway, report(old, 1, 10))
    shop.lapse(old)
    assert len(reclaim_jobs(rival, 10)) == 1
    assert record(gateway, report(old, 9, 10)).stale == {old.id}
    shop.rows.run("update pgbroker.job set state = 0")
    [new] = shop.claim(rival)
    assert record(gateway, report(old, 9, 10)).stale == {old.id}
    assert stored(shop) == {old.id: (1, 10, None)}
    assert record(rival, report(new, 2, 10)) == NOTHING
    assert stored(shop) == {old.id: (2, 10, None)}


def test_a_job_that_has_ended_is_stale_and_leaves_no_row(gateway, shop):
    claim = shop.claim_one(gateway)
    acknowledge_jobs(gateway, [completed(claim)])
    assert record(gateway, report(claim)).stale == {claim.id}
    assert stored(shop) == {}


def test_a_row_that_an_acknowledge_holds_is_busy_and_the_others_are_written(gateway, rival, shop):
    shop.fill(2)
    held, free = shop.claim(gateway)
    with rival.transaction():
        acknowledge_jobs(rival, [completed(held)])
        assert record(gateway, report(held), report(free)) == (frozenset({held.id}), frozenset())
    assert set(stored(shop)) == {free.id}


def test_a_renewal_passes_while_progress_is_written_and_the_other_way_round(gateway, rival, shop):
    claim = shop.claim_one(gateway)
    record(gateway, report(claim, 1))
    with rival.transaction():
        record(rival, report(claim, 2))
        assert not any(renew_leases(gateway, [claim], (), 60))
    with rival.transaction():
        renew_leases(rival, [claim], (), 60)
        assert record(gateway, report(claim, 3)) == NOTHING
    assert stored(shop)[claim.id] == (3, None, None)


@pytest.mark.parametrize(
    ("outcome", "next_state", "kept"),
    [
        (Outcome.COMPLETED, JobState.COMPLETED, {"done": 10, "total": 10, "stage": "load"}),
        (Outcome.CANCELLED, JobState.CANCELLED, {"done": 4, "total": 10, "stage": "load"}),
        (Outcome.FAILED, JobState.DEAD, {"done": 4, "total": 10, "stage": "load"}),
    ],
)
def test_the_archive_keeps_the_last_progress_and_completing_makes_it_whole(gateway, shop, outcome, next_state, kept):
    claim = shop.claim_one(gateway)
    record(gateway, report(claim, 4, 10, "load"))
    assert acknowledge_jobs(gateway, [verdict(claim, outcome, next_state)]) == NOTHING
    assert shop.archived(claim.id)["progress"] == kept
    assert stored(shop) == {}


def test_without_a_total_completing_leaves_what_was_done(gateway, shop):
    claim = shop.claim_one(gateway)
    record(gateway, report(claim, 4))
    acknowledge_jobs(gateway, [completed(claim)])
    assert shop.archived(claim.id)["progress"] == {"done": 4, "total": None, "stage": None}


def test_a_job_without_progress_is_archived_without(gateway, shop):
    shop.fill(2)
    plain, tracked = shop.claim(gateway)
    record(gateway, report(tracked))
    acknowledge_jobs(gateway, [completed(plain), completed(tracked)])
    assert shop.archived(plain.id)["progress"] is None
    assert shop.archived(tracked.id)["progress"] == {"done": 1, "total": None, "stage": None}


@pytest.mark.parametrize(
    ("outcome", "next_state"),
    [(Outcome.FAILED, JobState.SCHEDULED), (Outcome.INTERRUPTED, JobState.PENDING), (Outcome.LOST, JobState.SCHEDULED)],
)
def test_progress_stays_while_the_job_waits_for_another_attempt(gateway, shop, outcome, next_state):
    claim = shop.claim_one(gateway)
    record(gateway, report(claim, 4, 10))
    acknowledge_jobs(gateway, [verdict(claim, outcome, next_state)])
    assert stored(shop) == {claim.id: (4, 10, None)}


def test_a_job_that_expires_between_attempts_takes_its_progress_along(gateway, shop):
    claim = shop.claim_one(gateway)
    record(gateway, report(claim, 4, 10))
    acknowledge_jobs(gateway, [verdict(claim, Outcome.FAILED, JobState.SCHEDULED)])
    shop.rows.run("update pgbroker.job set expires_at = now() - interval '1 s'")
    plain = shop.job(expires_in=-1)
    assert set(expire_jobs(gateway, 10)) == {claim.id, plain}
    assert shop.archived(claim.id)["progress"] == {"done": 4, "total": 10, "stage": None}
    assert shop.archived(plain)["progress"] is None
    assert stored(shop) == {}
