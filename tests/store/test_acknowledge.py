"""What the end of a claim leaves behind: history, archive or the queue again, counters; for every outcome."""

from datetime import datetime

import pytest

from django_pgbroker.domain.states import UNCOUNTED_OUTCOMES, JobState, Outcome
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.reclaim import reclaim_jobs
from django_pgbroker.store.renew import renew_leases
from tests.store.jobs import ERROR, OUTCOMES, completed, verdict

NOTHING = (frozenset(), frozenset())


@pytest.mark.parametrize(("outcome", "next_state"), OUTCOMES)
def test_a_job_goes_where_the_verdict_says_and_its_counters_tell_how(gateway, shop, outcome, next_state):
    claim = shop.claim_one(gateway, attempt=1)

    assert acknowledge_jobs(gateway, [verdict(claim, outcome, next_state)]) == NOTHING

    assert shop.rows.state_of(claim.id) is next_state
    row = shop.archived(claim.id) if next_state.is_finished else shop.live(claim.id)
    assert row["attempt"] == (1 if outcome in UNCOUNTED_OUTCOMES else 2)
    assert row["deaths"] == (outcome is Outcome.LOST)
    assert row["interruptions"] == (outcome is Outcome.INTERRUPTED)
    assert bool(shop.live(claim.id)) is not next_state.is_finished
    assert bool(shop.rows.one("select true from pgbroker.job_payload")) is not next_state.is_finished


def test_every_outcome_but_a_release_leaves_an_execution_and_a_count(gateway, shop):
    shop.fill(len(OUTCOMES))
    claims = shop.claim(gateway, len(OUTCOMES))
    pairs = list(zip(claims, OUTCOMES, strict=True))
    acknowledge_jobs(gateway, [verdict(claim, *ending, reason="because") for claim, ending in pairs])

    for claim, (outcome, _) in pairs:
        executions = shop.executions(claim.id)
        if outcome is Outcome.RELEASED:
            assert executions == []
            continue
        [row] = executions
        assert (row["lease_token"], row["outcome"], row["attempt"], row["worker_id"]) == (
            claim.lease_token, int(outcome), 1, 1,
        )  # fmt: skip
        assert (row["reason"], row["run_microseconds"]) == ("because", 1500)
        error = ERROR if outcome in {Outcome.FAILED, Outcome.TIMED_OUT} else (None,) * 4
        assert [row[key] for key in ("error_class", "error_message", "traceback", "fingerprint")] == list(error)
    assert shop.rows.one("select sum(jobs) from pgbroker.stat_minute") == len(OUTCOMES) - 1


def test_an_archived_job_keeps_everything_of_the_live_one(gateway, shop):
    job_id = shop.job(priority=4, max_attempts=5)
    before = shop.live(job_id)
    [claim] = shop.claim(gateway)
    acknowledge_jobs(gateway, [completed(claim, result='{"total": [1, "ü"]}')])

    row = shop.archived(job_id)
    for column in ("tenant_id", "queue_id", "job_type_id", "created_at", "available_at", "priority", "max_attempts"):
        assert row[column] == before[column], column
    assert (row["arguments"], row["headers"], row["version"]) == ({"order_id": 7}, {"trace": "abc"}, 2)
    assert (row["correlation_id"], row["created_by"], row["result"]) == ("c-1", "alice", {"total": [1, "ü"]})
    assert (row["error_class"], row["error_message"], row["fingerprint"], row["reason"]) == (None, None, None, None)
    assert shop.rows.one("select tableoid::regclass::text from pgbroker.archived_job") != (
        "pgbroker.archived_job_finished_default"
    )


def test_a_dead_letter_lands_in_a_partition_of_its_own_with_its_error_and_payload(gateway, shop):
    claim = shop.claim_one(gateway)
    acknowledge_jobs(gateway, [verdict(claim, Outcome.FAILED, JobState.DEAD, reason="attempts spent")])

    row = shop.archived(claim.id)
    assert (row["error_class"], row["error_message"], row["fingerprint"]) == (ERROR[0], ERROR[1], ERROR[3])
    assert (row["reason"], row["arguments"]) == ("attempts spent", {"order_id": 7})
    assert shop.rows.one("select tableoid::regclass::text from pgbroker.archived_job") == "pgbroker.archived_job_dead"


def test_a_job_whose_payload_is_gone_is_archived_and_not_lost(gateway, shop):
    claim = shop.claim_one(gateway)
    shop.rows.run("delete from pgbroker.job_payload")
    assert acknowledge_jobs(gateway, [completed(claim)]) == NOTHING
    assert shop.rows.state_of(claim.id) is JobState.COMPLETED


def test_rows_fall_into_the_default_partitions_where_none_is_made_for_the_time(gateway, shop, move_clock):
    move_clock("5 years")
    claim = shop.claim_one(gateway)
    assert acknowledge_jobs(gateway, [completed(claim)]) == NOTHING
    assert shop.rows.one("select tableoid::regclass::text from pgbroker.archived_job") == (
        "pgbroker.archived_job_finished_default"
    )
    assert shop.rows.one("select tableoid::regclass::text from pgbroker.execution") == "pgbroker.execution_default"


def test_a_released_job_is_where_it_was_in_the_queue(gateway, shop):
    job_id = shop.job(priority=2)
    before = shop.live(job_id)
    [claim] = shop.claim(gateway)
    acknowledge_jobs(gateway, [verdict(claim, Outcome.RELEASED, JobState.PENDING)])
    assert shop.live(job_id) == before


def test_a_loss_of_what_never_began_costs_no_attempt_and_is_no_death(gateway, shop):
    shop.fill(2)
    begun, waiting = shop.claim(gateway, begin=1)
    shop.lapse(begun, waiting)
    assert {job.id: job.next_state for job in reclaim_jobs(gateway, 10)} == {
        begun.id: JobState.SCHEDULED, waiting.id: JobState.PENDING,
    }  # fmt: skip

    assert [shop.live(begun.id)[key] for key in ("attempt", "lapses", "deaths")] == [1, 1, 1]
    assert [shop.live(waiting.id)[key] for key in ("attempt", "lapses", "deaths")] == [0, 1, 0]
    assert [shop.executions(each.id)[0]["outcome"] for each in (begun, waiting)] == [Outcome.LOST, Outcome.LOST]


def test_a_claim_that_waited_and_was_seen_running_by_a_renewal_has_begun(gateway, shop):
    shop.fill(2)
    ran, waited = shop.claim(gateway, begin=0)
    renew_leases(gateway, [ran, waited], {ran.id}, 60)
    shop.lapse(ran, waited)
    reclaim_jobs(gateway, 10)
    assert [shop.live(each.id)["attempt"] for each in (ran, waited)] == [1, 0]


def test_what_has_begun_stays_begun_though_a_renewal_finds_it_running_no_more(gateway, shop):
    claim = shop.claim_one(gateway)
    renew_leases(gateway, [claim], set(), 60)
    shop.lapse(claim)
    reclaim_jobs(gateway, 10)
    assert shop.live(claim.id)["attempt"] == 1


def test_an_interrupted_job_keeps_its_place_in_the_queue(gateway, shop):
    job_id = shop.job(priority=2)
    before = shop.live(job_id)
    [claim] = shop.claim(gateway)
    acknowledge_jobs(gateway, [verdict(claim, Outcome.INTERRUPTED, JobState.PENDING)])
    assert shop.live(job_id) == {**before, "interruptions": 1}


def test_a_retry_waits_from_now_on_and_keeps_its_priority(gateway, shop):
    claim = shop.claim_one(gateway, priority=2, due_in=-3600)
    acknowledge_jobs(gateway, [verdict(claim, Outcome.FAILED, JobState.SCHEDULED, delay_seconds=90.5)])

    row = shop.live(claim.id)
    due_in, lifted = shop.rows.gateway.connection.execute(
        "select extract(epoch from available_at - now())::float8,"
        " extract(epoch from available_at - claim_order)::float8 from pgbroker.job"
    ).fetchone()
    assert 85 < due_in <= 90.5
    assert lifted == 2 * 60
    assert [row[key] for key in ("lease_token", "leased_at", "lease_expires_at", "started_at", "worker_id")] == [
        None
    ] * 5


def test_each_verdict_of_a_mixed_batch_reaches_its_own_job_whatever_the_order(gateway, shop):
    shop.fill(24)
    claims = shop.claim(gateway, 24)
    verdicts = [
        verdict(claim, *OUTCOMES[number % len(OUTCOMES)], reason=f"job {claim.id}", run_microseconds=claim.id * 1000)
        for number, claim in enumerate(claims)
    ]
    assert acknowledge_jobs(gateway, verdicts[::-1]) == NOTHING

    for each in verdicts:
        assert shop.rows.state_of(each.job_id) is each.next_state
        executions = shop.executions(each.job_id)
        assert [row["outcome"] for row in executions] == [each.outcome][: each.outcome]
        assert all(row["reason"] == each.reason for row in executions)
        assert all(row["run_microseconds"] == each.run_microseconds for row in executions)


def test_the_counters_of_a_minute_add_up_to_the_executions(gateway, shop):
    shop.fill(60)
    while claims := shop.claim(gateway, 12):
        choices = [pair for pair in OUTCOMES if pair[1].is_finished or pair[0] is Outcome.SNOOZED]
        acknowledge_jobs(
            gateway,
            [
                verdict(claim, *choices[number % len(choices)], run_microseconds=4_000 * (number + 1))
                for number, claim in enumerate(claims)
            ],
        )

    by_outcome = (
        "select jsonb_object_agg(outcome, numbers) from (select outcome, jsonb_build_array({}) as numbers"
        " from pgbroker.{} group by outcome) as row"
    )
    stats = shop.rows.one(by_outcome.format("sum(jobs), sum(run_microseconds)", "stat_minute"))
    assert stats == shop.rows.one(by_outcome.format("count(*), sum(run_microseconds)", "execution"))
    assert sum(jobs for jobs, _ in stats.values()) == 60
    assert shop.rows.one("select count(distinct run_bucket) from pgbroker.stat_minute") >= 4


def test_a_bucket_is_the_logarithm_of_the_milliseconds(gateway, shop):
    buckets = {0: 0, 999: 0, 1000: 1, 1999: 1, 2000: 2, 3999: 2, 4000: 3, 10**12: 27}
    shop.fill(len(buckets))
    claims = shop.claim(gateway, len(buckets))
    acknowledge_jobs(
        gateway, [completed(claim, run_microseconds=ran) for claim, ran in zip(claims, buckets, strict=True)]
    )
    found = shop.rows.one("select array_agg(run_bucket order by run_bucket) from pgbroker.stat_minute")
    assert found == sorted(set(buckets.values()))
    assert shop.rows.one("select jobs from pgbroker.stat_minute where run_bucket = 0") == 2


def test_a_completed_job_was_finished_at_the_moment_of_its_acknowledge(gateway, shop):
    claim = shop.claim_one(gateway)
    before = shop.rows.one("select clock_timestamp()")
    acknowledge_jobs(gateway, [completed(claim)])
    after = shop.rows.one("select clock_timestamp()")
    assert before <= datetime.fromisoformat(shop.archived(claim.id)["finished_at"]) <= after
