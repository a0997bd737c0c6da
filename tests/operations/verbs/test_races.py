"""A verb beside a worker, a duty or another verb on one job, on two connections: one comes first, the other sees it."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from django_pgbroker import BrokerDatabaseError
from django_pgbroker.domain.records import Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verb_report import RefusalKind
from django_pgbroker.models import AuditEntry, Job
from django_pgbroker.operations.job_verbs import cancel_jobs, redrive_jobs
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.one_job import claim_one_job
from django_pgbroker.store.renew import renew_leases
from tests.maintenance.connections import rival, rows
from tests.maintenance.waiting import wait_until
from tests.operations.verbs.acts import ACTS, make_job, state_of

__all__ = ["rival", "rows"]

EVERY_ACT = pytest.mark.parametrize("act", ACTS, ids=lambda act: act.verb.name)


def claim(gateway, job_id):
    return bool(gateway.fetch("claim_one_job", {"id": job_id, "lease_seconds": 60.0, "worker_id": 1}))


def complete(gateway, job_id):
    return acknowledge(gateway, job_id, Outcome.COMPLETED, JobState.COMPLETED)


def retry_later(gateway, job_id):
    return acknowledge(gateway, job_id, Outcome.FAILED, JobState.SCHEDULED)


def die(gateway, job_id):
    return acknowledge(gateway, job_id, Outcome.FAILED, JobState.DEAD)


def acknowledge(gateway, job_id, outcome, next_state):
    token = Job.objects.using("default").values_list("lease_token", flat=True).filter(pk=job_id).first()
    report = acknowledge_jobs(gateway, [Verdict(job_id, token or 0, outcome, next_state, delay_seconds=600.0)])
    return not report.busy and not report.stale


def promote(gateway, job_id):
    return gateway.execute("promote_one_job", {"id": job_id}) == 1


def expire(gateway, job_id):
    gateway.connection.execute("update pgbroker.job set expires_at = now() - interval '1 s' where id = %s", [job_id])
    return bool(gateway.fetch("expire_jobs", {"batch": 10}))


def verb(name, **more):
    def act(gateway, job_id):
        return bool(gateway.fetch(name, {"ids": array_of_integers([job_id]), **more}))

    act.__name__ = name
    return act


WHO = {"actor": "grace", "reason": None}

#: What others do to a job, by the state that it is in before.
RACERS = {
    JobState.PENDING: [claim, expire, verb("cancel_jobs", **WHO)],
    JobState.SCHEDULED: [promote, expire, verb("cancel_jobs", **WHO), verb("run_jobs_now")],
    JobState.PARKED: [verb("release_jobs"), expire, verb("cancel_jobs", **WHO)],
    JobState.BLOCKED: [expire, verb("cancel_jobs", **WHO)],
    JobState.RUNNING: [complete, retry_later, die],
    JobState.DEAD: [verb("discard_jobs", **WHO), verb("redrive_jobs", keep_attempts=False, timeout_seconds=60)],
    JobState.CANCELLED: [verb("redrive_jobs", keep_attempts=True, timeout_seconds=60)],
    JobState.EXPIRED: [verb("redrive_jobs", keep_attempts=True, timeout_seconds=60)],
}

#: Where a racer leaves the job.
AFTER = {
    "claim": JobState.RUNNING,
    "expire": JobState.EXPIRED,
    "cancel_jobs": JobState.CANCELLED,
    "promote": JobState.PENDING,
    "run_jobs_now": JobState.PENDING,
    "release_jobs": JobState.PENDING,
    "complete": JobState.COMPLETED,
    "retry_later": JobState.SCHEDULED,
    "die": JobState.DEAD,
    "discard_jobs": JobState.CANCELLED,
    "redrive_jobs": JobState.PENDING,
}

EVERY_RACER = pytest.mark.parametrize(
    ("state", "racer"),
    [
        pytest.param(state, racer, id=f"{state.label}-{racer.__name__}")
        for state, racers in RACERS.items()
        for racer in racers
    ],
)


def check(report, act, job_id, met):
    """The verb met the job in state ``met``: it did what it does to such a job, once, or refused it."""
    if act.verb.applies_to(met):
        assert (report.changed, report.refused) == (1, 0)
        assert state_of(job_id) is act.target(met)
    else:
        assert (report.changed, report.refused) == (0, 1)
        assert state_of(job_id) is met
    entries = AuditEntry.objects.filter(actor="ada").values_list("before__state", flat=True)
    assert list(entries) == [met.label] * report.changed


@EVERY_ACT
@EVERY_RACER
def test_a_verb_that_comes_second_waits_and_goes_by_what_it_finds_then(  # noqa: PLR0917
    act, state, racer, broker_database, rival, rows
):
    job_id = make_job(state)

    def call():
        try:
            return act.call(job_id, actor="ada")
        finally:
            connection.close()

    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%%for update%%'"
    with ThreadPoolExecutor(1) as pool:
        with rival.transaction():
            assert racer(rival, job_id), "the racer has the job"
            answer = pool.submit(call)
            wait_until(lambda: answer.done() or rows.one(waiting), "the verb waits")
            assert not answer.done(), "the verb did not wait for the one who was first"
        report = answer.result(timeout=15)
    check(report, act, job_id, AFTER[racer.__name__])


@EVERY_ACT
@pytest.mark.parametrize("state", [JobState.PENDING, JobState.SCHEDULED, JobState.RUNNING], ids=str)
def test_nobody_waits_for_a_verb_that_holds_a_job_and_nothing_is_lost(act, state, broker_database, rival):
    job_id = make_job(state)
    token = Job.objects.get(pk=job_id).lease_token
    with transaction.atomic():
        report = act.call(job_id, actor="ada")
        held = state_of(job_id)
        rival.connection.execute("set lock_timeout = '5s'")
        if state is JobState.RUNNING:
            verdict = Verdict(job_id, token, Outcome.COMPLETED, JobState.COMPLETED)
            assert acknowledge_jobs(rival, [verdict]).busy == {job_id}
        else:
            assert not claim(rival, job_id)
    if state is JobState.RUNNING:
        assert not any(acknowledge_jobs(rival, [verdict]))
        ended = JobState.CANCELLED if act.verb.name == "job.cancel" else JobState.COMPLETED
        assert state_of(job_id) is ended
    else:
        assert claim(rival, job_id) is (held is JobState.PENDING)
    assert AuditEntry.objects.count() == report.changed


def test_a_row_that_somebody_holds_for_long_is_left_to_them_and_said_so(broker_database, rival):
    job_id = make_job(JobState.PENDING)
    with rival.transaction():
        rival.connection.execute("select from pgbroker.job for update")
        with pytest.raises(BrokerDatabaseError, match="Another transaction holds what this needs"):
            cancel_jobs(job_id, actor="ada")
    assert cancel_jobs(job_id, actor="ada").changed == 1


def test_verbs_that_cross_on_many_jobs_end_without_an_error_and_each_job_is_in_one_place(broker_database):
    """Back and forth between the tables: whoever locked out of order would meet the other one in a deadlock."""
    ids = [make_job(JobState.DEAD) for _ in range(60)]
    until = time.monotonic() + 4

    def loop(verb, chosen):
        done = 0
        try:
            while time.monotonic() < until:
                report = verb(chosen, actor="ada")
                assert RefusalKind.NOT_FOUND not in {refusal.kind for refusal in report.refusals}
                done += report.changed
        finally:
            connection.close()
        return done

    with ThreadPoolExecutor(3) as pool:
        loops = [(redrive_jobs, ids), (cancel_jobs, ids), (redrive_jobs, ids[::2])]
        changed = [each.result(timeout=30) for each in [pool.submit(loop, *one) for one in loops]]
    assert all(changed)
    assert {state_of(job_id) for job_id in ids} <= {JobState.PENDING, JobState.CANCELLED}
    assert sum(AuditEntry.objects.values_list("count", flat=True)) == sum(changed)


def test_a_renewal_does_not_wait_for_a_verb_and_keeps_the_other_leases(broker_database, rival):
    job_id, other = make_job(JobState.PENDING), make_job(JobState.PENDING)
    claims = [claim_one_job(rival, each, 1, 60.0) for each in (job_id, other)]
    with transaction.atomic():
        cancel_jobs(job_id, actor="ada")
        rival.connection.execute("set lock_timeout = '5s'")
        assert not renew_leases(rival, claims, {job_id, other}, 3600.0).stale
    far = timezone.now() + timedelta(minutes=30)
    assert [job.lease_expires_at > far for job in Job.objects.order_by("id")] == [False, True]
