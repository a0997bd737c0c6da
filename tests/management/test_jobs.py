"""What ``pgbroker_jobs`` does: every verb, by id and by filter, tried, asked, refused."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, AuditEntry, Job
from tests import factories
from tests.management.commands import Typed, jobs, make, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def empty(broker_database: None) -> None:
    """Every test counts from nothing."""


def state_of(job: object) -> JobState:
    found = Job.objects.filter(pk=job.pk).first() or ArchivedJob.objects.get(pk=job.pk)
    return JobState(found.state)


#: Subcommand with its options, a state it takes a job from, the state it leaves it in, the action in the audit.
VERBS = [
    (["cancel"], JobState.PENDING, JobState.CANCELLED, "job.cancel", "cancel_job"),
    (["retry"], JobState.SCHEDULED, JobState.PENDING, "job.retry", "retry_job"),
    (["run-now"], JobState.SCHEDULED, JobState.PENDING, "job.run_now", "run_job_now"),
    (["release"], JobState.PARKED, JobState.PENDING, "job.release", "release_job"),
    (["discard"], JobState.DEAD, JobState.CANCELLED, "job.discard", "discard_job"),
    (["postpone", "--until", "2h"], JobState.PENDING, JobState.SCHEDULED, "job.postpone", "postpone_job"),
    (["move", "--to", "other"], JobState.PENDING, JobState.PENDING, "job.move", "move_job"),
    (["priority", "--to", "-5"], JobState.PENDING, JobState.PENDING, "job.set_priority", "set_job_priority"),
]
each_verb = pytest.mark.parametrize(("words", "before", "after", "action", "permission"), VERBS, ids=lambda value: (
    value[0] if isinstance(value, list) else ""
))  # fmt: skip


@each_verb
def test_a_verb_changes_one_job_by_id_without_a_question_and_is_audited(words, before, after, action, permission):
    factories.QueueFactory(name="other")
    job = make(before)

    ran = jobs(*words, str(job.pk), "--reason", "because", "--json")

    assert ran.status == 0, ran.error
    assert (ran.json["verb"], ran.json["changed"], ran.json["ids"]) == (action, 1, [job.pk])
    assert state_of(job) is after
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.source, entry.reason) == (action, "command", "because")
    assert entry.actor.startswith("system (")


@each_verb
def test_a_dry_run_tells_what_would_happen_and_changes_nothing(words, before, after, action, permission):
    factories.QueueFactory(name="other")
    job = make(before)

    for selection in ([str(job.pk)], ["--type", job.job_type.name]):
        ran = jobs(*words, *selection, "--dry-run")
        assert (ran.status, ran.rows) == (0, [[str(job.pk), "would change", ""]]), ran.error
        assert jobs(*words, *selection, "--dry-run", "--json").json["is_dry_run"] is True

    assert state_of(job) is before
    assert not AuditEntry.objects.exists()


@each_verb
def test_a_user_without_the_permission_is_refused_and_nothing_is_audited(words, before, after, action, permission):
    factories.QueueFactory(name="other")
    job = make(before)
    make_user("ada")

    ran = jobs(*words, str(job.pk), "--as", "ada")

    assert ran.status == 4
    assert f"django_pgbroker.{permission}" in ran.error
    assert state_of(job) is before
    assert not AuditEntry.objects.exists()


@each_verb
def test_a_user_with_the_permission_does_it_in_his_own_name(words, before, after, action, permission):
    factories.QueueFactory(name="other")
    job = make(before)
    make_user("ada", permission)

    assert jobs(*words, "--type", job.job_type.name, "--as", "ada", "--yes").status == 0

    assert state_of(job) is after
    assert AuditEntry.objects.get().actor == "ada"


@each_verb
def test_a_job_in_another_state_is_refused_with_the_reason(words, before, after, action, permission):
    factories.QueueFactory(name="other")
    job = make(JobState.COMPLETED)

    ran = jobs(*words, str(job.pk))

    assert ran.status == 5
    assert ran.rows[0][:2] == [str(job.pk), "refused"]
    assert "completed" in ran.rows[0][2]


def test_some_refused_is_done_in_part_and_each_is_told():
    job, ended = make(JobState.PENDING), make(JobState.COMPLETED)

    ran = jobs("cancel", str(job.pk), str(ended.pk), "999", "--yes", "--json")

    assert ran.status == 3
    assert (ran.json["changed"], ran.json["refused"]) == (1, 2)
    assert {each["id"]: each["kind"] for each in ran.json["refusals"]} == {ended.pk: "finished", 999: "not found"}
    assert "2 refused" in ran.error


def test_refusals_stand_in_a_table_on_a_terminal():
    job = make(JobState.PENDING)

    ran = jobs("cancel", str(job.pk), "999", "--yes", terminal=True)

    assert ran.status == 3
    assert ran.out.splitlines()[0].split() == ["refused", "because"]
    assert ran.out.splitlines()[1].startswith("999 ")
    assert f"1 job cancelled: {job.pk}. 1 refused." in ran.error


def test_a_running_job_is_asked_to_end_once():
    job = make(JobState.RUNNING)

    first, second = jobs("cancel", str(job.pk), terminal=True), jobs("cancel", str(job.pk), terminal=True)

    assert (first.status, second.status) == (0, 0)
    assert "asked to end" in first.out
    assert "had been asked to end before" in second.out
    assert AuditEntry.objects.count() == 1
    assert "cancel requested" in jobs("list").out


def test_more_than_one_needs_yes_where_nobody_can_be_asked():
    first, second = make(JobState.PENDING), make(JobState.PENDING)

    for selection in ([str(first.pk), str(second.pk)], ["--queue", "default"]):
        ran = jobs("cancel", *selection)
        assert ran.status == 4
        assert "--yes" in ran.error
    assert Job.objects.count() == 2
    assert jobs("cancel", str(first.pk), str(second.pk), "--yes").status == 0
    assert not Job.objects.exists()


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("YES\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_a_person_is_asked_with_the_count_in_words(monkeypatch, answer, left):
    make(JobState.PENDING), make(JobState.PENDING)
    monkeypatch.setattr("sys.stdin", Typed(answer))

    ran = jobs("cancel", "--queue", "default", terminal=True)

    assert "2 jobs would be cancelled" in ran.error
    assert Job.objects.count() == left
    assert ran.status == (4 if left else 0)
    assert AuditEntry.objects.exists() is not bool(left)


def test_nobody_is_asked_about_nothing(monkeypatch):
    monkeypatch.setattr("sys.stdin", Typed("y\n"))
    factories.QueueFactory()

    ran = jobs("cancel", "--queue", "default", terminal=True)

    assert ran.status == 5
    assert "[y/N]" not in ran.error
    assert "Nothing was cancelled. Nothing matched." in ran.error


def test_filters_choose_by_all_that_is_given():
    mail = factories.QueueFactory(name="mail")
    wanted = make(JobState.DEAD, queue=mail, error_message="Connection REFUSED by peer")
    make(JobState.DEAD, error_message="connection refused")
    make(JobState.DEAD, queue=mail)
    make(JobState.CANCELLED, queue=mail, error_message="connection refused")

    ran = jobs("discard", "--state", "dead", "--queue", "mail", "--error", "connection refused", "--yes", "--json")

    assert ran.json["ids"] == [wanted.pk]


def test_dead_letters_are_retried_by_their_ids_and_by_a_filter_only_redriven():
    dead = make(JobState.DEAD)
    assert "only scheduled ones" in jobs("retry", "--state", "dead", "--yes").error
    assert jobs("retry", str(dead.pk)).status == 0
    assert state_of(dead) is JobState.PENDING


def test_spans_are_ago_and_by_the_clock_of_the_database():
    now = timezone.now()
    old, new = (make(JobState.PENDING, created_at=now - timedelta(hours=hours)) for hours in (5, 1))

    assert jobs("cancel", "--created-before", "2h", "--yes", "--json").json["ids"] == [old.pk]
    assert jobs("cancel", "--created-after", "2h", "--dry-run", "--json").json["ids"] == [new.pk]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cancel"], "which jobs"),
        (["cancel", "7", "--queue", "default"], "not both"),
        (["cancel", "zero"], "no id"),
        (["cancel", "0"], "no id"),
        (["cancel", "9223372036854775808"], "no id"),
        (["cancel", "--state", "sleeping"], "sleeping"),
        (["cancel", "--state", "dead", "--yes"], "cannot take jobs that are dead"),
        (["cancel", "--queue", "nowhere", "--yes"], "there is no queue 'nowhere'"),
        (["cancel", "--queue", "a b", "--yes"], "cannot be the name of a queue"),
        (["cancel", "7", "--as", "nobody"], "there is no user 'nobody'"),
        (["cancel", "7", "--reason", "x" * 201], "reason must be"),
        (["cancel", "7", "--database", "nowhere"], "no alias"),
        (["move", "7", "--to", "nowhere"], "there is no queue 'nowhere'"),
        (["priority", "7", "--to", "1000"], "priority"),
        (["priority", "7", "--to", "sometime"], "priority"),
        (["postpone", "7", "--until", "2020-01-01T00:00Z"], "has passed"),
        (["edit", "7", "--arguments", "[1]"], "no JSON object"),
        (["edit", "7", "--arguments", "{"], "no JSON"),
        (["edit", "7", "--arguments", '{"a": NaN}'], "NaN"),
        (["list", "--limit", "0"], "no limit"),
        (["list", "--error", "x"], "finished"),
        (["list", "--state", "dead", "--state", "pending"], "two lists"),
        (["list", "--type", "no.such"], "there is no job type"),
    ],
)
def test_what_cannot_be_is_an_error_with_the_next_step(words, told):
    ran = jobs(*words)

    assert ran.status == 1
    assert told in ran.error


def test_many_are_left_to_a_job_of_the_broker(monkeypatch):
    monkeypatch.setattr("django_pgbroker.operations.job_changes.MOST_AT_ONCE", 2)
    for _ in range(3):
        make(JobState.PENDING)

    tried = jobs("cancel", "--queue", "default", "--dry-run", terminal=True)
    assert tried.out == "3 jobs would be cancelled, by a job of the broker.\n"
    assert Job.objects.count() == 3

    ran = jobs("cancel", "--queue", "default", "--yes", terminal=True)
    helper = Job.objects.latest("pk")
    assert ran.status == 0
    assert f"pgbroker_jobs show {helper.pk}" in ran.out
    assert helper.job_type.name == "pgbroker.change_jobs"
    assert Job.objects.count() == 4


def test_many_are_done_at_once_in_the_foreground(monkeypatch):
    monkeypatch.setattr("django_pgbroker.operations.job_changes.MOST_AT_ONCE", 2)
    for _ in range(3):
        make(JobState.PENDING)

    assert jobs("cancel", "--queue", "default", "--yes", "--foreground", "--json").json["changed"] == 3
    assert not Job.objects.exists()
