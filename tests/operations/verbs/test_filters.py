"""Verbs on all jobs that match a filter: exactly those, in batches, whatever else is in the tables."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from django_pgbroker import InvalidOption, UnknownQueue, pause_queue
from django_pgbroker.domain import verbs
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, AuditEntry, Job
from django_pgbroker.operations.job_changes import MOST_AT_ONCE, count_matching
from django_pgbroker.operations.job_verbs import (
    cancel_jobs,
    discard_jobs,
    edit_job,
    postpone_jobs,
    purge_queue,
    redrive_jobs,
    retry_jobs,
    run_jobs_now,
    set_job_priorities,
)
from tests.factories import ArchivedJobFactory, JobFactory, WorkerFactory
from tests.maintenance.connections import rows
from tests.operations.verbs.crowd import add_dead_letters, add_waiting_jobs

__all__ = ["rows"]

HOUR = timedelta(hours=1)


def dead(**more):
    return ArchivedJobFactory(dead=True, **more).pk


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("chosen", "matching", "other"),
    [
        ({"queue": "mail"}, {"queue__name": "mail"}, {"queue__name": "other"}),
        ({"job_type": "a.b"}, {"job_type__name": "a.b"}, {"job_type__name": "a.c"}),
        ({"tenant": "acme"}, {"tenant__name": "acme"}, {"tenant__name": "other"}),
        ({"error_class": "KeyError"}, {"error_class": "KeyError"}, {"error_class": "LookupError"}),
        ({"error_class": "KeyError"}, {"error_class": "builtins.KeyError"}, {"error_class": "shop.MonkeyError"}),
        ({"error_class": "a.KeyError"}, {"error_class": "a.KeyError"}, {"error_class": "b.KeyError"}),
        ({"error": "100% OFF_"}, {"error_message": "got 100% off_ today"}, {"error_message": "got 100x offx"}),
        ({"created_after": -HOUR}, {"created_at": -HOUR / 2}, {"created_at": -HOUR * 2}),
        ({"created_before": -HOUR}, {"created_at": -HOUR * 2}, {"created_at": -HOUR / 2}),
        ({"finished_after": -HOUR}, {"finished_at": -HOUR / 2}, {"finished_at": -HOUR * 2}),
        ({"finished_before": -HOUR}, {"finished_at": -HOUR * 2}, {"finished_at": -HOUR / 2}),
    ],
    ids=lambda value: next(iter(value), ""),
)
def test_each_part_of_a_filter_chooses(chosen, matching, other):
    now = timezone.now()

    def at(fields):
        return {name: now + value if isinstance(value, timedelta) else value for name, value in fields.items()}

    wanted, unwanted = dead(**at(matching)), dead(**at(other))
    report = redrive_jobs(JobFilter(**at(chosen)), actor="ada")
    assert (report.changed, report.ids, report.background_job_id) == (1, (wanted,), None)
    assert ArchivedJob.objects.get().pk == unwanted


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("verb", "states"),
    [
        (cancel_jobs, {JobState.PENDING, JobState.SCHEDULED, JobState.BLOCKED, JobState.PARKED}),
        (retry_jobs, {JobState.SCHEDULED}),
        (redrive_jobs, {JobState.DEAD}),
        (discard_jobs, {JobState.DEAD}),
        (run_jobs_now, {JobState.SCHEDULED}),
    ],
)
def test_a_filter_without_states_means_all_that_wait_or_else_the_dead_letters(verb, states):
    for state in JobState:
        if state.is_finished:
            ArchivedJobFactory(state=state)
        elif state is not JobState.RUNNING:
            JobFactory(state=state, attempt=1)
    assert verb(JobFilter(queue="default"), actor="ada").changed == len(states)


@pytest.mark.django_db
def test_a_retry_by_a_filter_takes_the_retries_that_wait_and_nothing_that_was_never_tried():
    retry = JobFactory(scheduled=True, attempt=1).pk
    JobFactory(scheduled=True)
    assert retry_jobs(JobFilter(queue="default"), actor="ada").ids == (retry,)


@pytest.mark.django_db
def test_chosen_states_narrow_it():
    jobs = {state: JobFactory(state=state).pk for state in (JobState.PENDING, JobState.SCHEDULED)}
    assert cancel_jobs(JobFilter(states=("scheduled",)), actor="ada").ids == (jobs[JobState.SCHEDULED],)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cancel_jobs(JobFilter(states=("dead",)), actor="a"), "cannot take jobs that are dead"),
        (
            lambda: retry_jobs(JobFilter(states=("dead",)), actor="a"),
            "job.retry by a filter cannot take jobs that are dead",
        ),
        (lambda: redrive_jobs(JobFilter(), actor="a"), r"an empty filter would mean every job.*states=\('dead',\)"),
        (lambda: cancel_jobs(JobFilter(), actor="a"), "an empty filter would mean every job"),
        (lambda: cancel_jobs(JobFilter(tried="yes"), actor="a"), "tried must be True, False or None"),
        (lambda: cancel_jobs(7), "needs actor="),
        (lambda: cancel_jobs(JobFilter(error="x"), actor="a"), "are for finished jobs"),
        (lambda: cancel_jobs(JobFilter(states=("pendign",)), actor="a"), "Did you mean 'pending'"),
        (lambda: JobFilter(created_after=timezone.now().replace(tzinfo=None)), "has no time zone"),
        (lambda: JobFilter(error="a\x00"), "error must be"),
        (lambda: JobFilter(created_after=timezone.now(), created_before=timezone.now() - HOUR), "no job could match"),
        (lambda: JobFilter.from_json({"queu": "x"}), "Did you mean 'queue'"),
        (lambda: cancel_jobs("7", actor="a"), "named by an id"),
        (lambda: cancel_jobs([1, "2"], actor="a"), "job_id must be"),
        (lambda: cancel_jobs(range(1, 20_000), actor="a"), "use a JobFilter"),
        (lambda: cancel_jobs([1], actor="a", in_background=True), "in_background is for a filter"),
        (lambda: cancel_jobs(JobFilter(queue="default"), actor=7), "actor must be a user"),
        (lambda: redrive_jobs(JobFilter(queue="default"), per_second=0, actor="a"), "per_second"),
        (lambda: postpone_jobs(1, actor="a"), "either delay or run_at"),
        (lambda: postpone_jobs(1, run_at=timezone.now() - HOUR, actor="a"), "has passed"),
        (lambda: edit_job(JobFilter(), {}, actor="a"), "job_id"),
    ],
)
def test_what_is_impossible_is_refused_before_anything_is_changed(call, message):
    JobFactory()
    dead()
    with pytest.raises(InvalidOption, match=message):
        call()
    assert (Job.objects.count(), ArchivedJob.objects.count(), AuditEntry.objects.count()) == (1, 1, 0)


@pytest.mark.django_db
def test_a_queue_that_does_not_exist_is_named_with_the_one_that_was_meant():
    JobFactory(queue__name="mail")
    with pytest.raises(UnknownQueue, match="no queue 'mial'. Did you mean 'mail'"):
        cancel_jobs(JobFilter(queue="mial"), actor="ada")
    with pytest.raises(UnknownQueue):
        purge_queue("mial", actor="ada")


def test_who_leaves_a_verb_to_a_job_hears_why_nobody_would_carry_it_out(broker_database, rows):
    def ask():
        return redrive_jobs(JobFilter(queue="default"), in_background=True, actor="ada").obstacle

    rows.queue("default")
    assert ask() == "no live worker serves its queue 'default'"
    WorkerFactory(queues={"default": 1})
    assert ask() == ""
    pause_queue("default", actor="ada")
    assert ask() == "its queue 'default' is paused"


@pytest.mark.django_db
def test_a_purge_takes_the_pending_jobs_of_one_queue_alone():
    pending = JobFactory(queue__name="mail").pk
    others = {JobFactory(queue__name="mail", state=state).pk for state in (2, 3, 4)} | {JobFactory().pk}
    report = purge_queue("mail", actor="ada", reason="spam")
    assert report.ids == (pending,)
    assert set(Job.objects.values_list("pk", flat=True)) == others
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target["filter"]) == ("queue.purge", {"states": ["pending"], "queue": "mail"})


def test_a_filter_reaches_over_windows_and_batches_and_takes_nothing_else(broker_database, rows):
    first, _ = add_dead_letters(rows, 300, queue="mail")
    add_dead_letters(rows, 45_000, queue="other")
    _, last = add_dead_letters(rows, 900, queue="mail")

    assert count_matching(verbs.REDRIVE_JOB, JobFilter(queue="mail")).count == 1_200
    report = redrive_jobs(JobFilter(queue="mail"), actor="ada")

    assert (report.changed, report.refused) == (1_200, 0)
    assert (report.ids[0], len(report.ids)) == (first, 1_000)
    assert Job.objects.count() == 1_200
    assert ArchivedJob.objects.count() == 45_000
    entries = AuditEntry.objects.order_by("id")
    assert sum(entry.count for entry in entries) == 1_200
    assert max(entry.count for entry in entries) <= 500
    assert entries.last().target["jobs"][-1] == last


def test_a_count_ends_where_it_was_asked_to(broker_database, rows):
    add_dead_letters(rows, 2_500)
    few = count_matching(verbs.REDRIVE_JOB, JobFilter(queue="default"), most=10)
    many = count_matching(verbs.REDRIVE_JOB, JobFilter(queue="default"), most=2_500)
    assert (few.count, few.is_exact) == (11, False)
    assert (many.count, many.is_exact) == (2_500, True)


def test_more_than_can_be_done_at_once_is_left_to_a_job_unless_it_may_not(broker_database, rows):
    add_waiting_jobs(rows, MOST_AT_ONCE + 1)
    report = set_job_priorities(JobFilter(queue="default"), 50, actor="ada")
    assert (report.changed, AuditEntry.objects.count()) == (0, 0)
    [bulk] = Job.objects.filter(job_type__name="pgbroker.change_jobs")
    assert (bulk.pk, bulk.priority) == (report.background_job_id, 100)

    report = set_job_priorities(JobFilter(queue="default"), 50, actor="ada", in_background=False)
    assert (report.changed, report.background_job_id) == (MOST_AT_ONCE + 2, None)


def test_jobs_that_come_after_a_verb_has_begun_are_not_its_own(broker_database, rows, observer):
    """A redriven job that dies again at once must not be redriven for ever."""
    [first, _] = add_dead_letters(rows, 3)
    rows.run("update pgbroker.archived_job set finished_at = now() + interval '1 h' where id = %s", first)
    assert redrive_jobs(JobFilter(queue="default"), actor="ada").changed == 2
    assert observer.value("select id from pgbroker.archived_job") == first


def test_a_bulk_verb_goes_with_the_callers_transaction(broker_database, rows):
    add_waiting_jobs(rows, 700)
    with transaction.atomic():
        assert cancel_jobs(JobFilter(states=("pending",)), actor="ada").changed == 700
        transaction.set_rollback(True)
    assert (Job.objects.count(), AuditEntry.objects.count()) == (700, 0)


def test_a_verb_that_fails_costs_the_caller_nothing_but_itself(broker_database, rows):
    job = JobFactory()
    rows.run("alter table pgbroker.audit_entry add constraint no_ada check (actor <> 'ada')")
    try:
        with transaction.atomic():
            JobFactory(queue__name="kept")
            with pytest.raises(Exception, match="no_ada"):
                cancel_jobs(job.pk, actor="ada")
            assert cancel_jobs(job.pk, actor="grace").changed == 1
    finally:
        rows.run("alter table pgbroker.audit_entry drop constraint no_ada")
    assert Job.objects.get().queue.name == "kept"


def test_a_verb_works_in_a_transaction_that_was_begun_by_hand(broker_database):
    job = JobFactory()
    with connection.cursor() as cursor:
        cursor.execute("begin")
        assert cancel_jobs(job.pk, actor="ada").changed == 1
        cursor.execute("rollback")
    assert Job.objects.get().pk == job.pk
