"""The verbs of ``pgbroker_jobs`` for one job: edit, clone, enqueue; and what is said of a job that is not there."""

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import AuditEntry, Job, JobPayload
from tests import factories
from tests.management.commands import Typed, jobs, make, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def empty(broker_database: None) -> None:
    """Every test counts from nothing."""


@pytest.fixture
def job():
    return make(JobState.PENDING, job_type=factories.JobTypeFactory(name="tests.add"))


def test_arguments_are_replaced_and_checked(job):
    assert jobs("edit", str(job.pk), "--arguments", '{"left": 8}').status == 0
    assert JobPayload.objects.get(pk=job.pk).arguments["left"] == 8

    ran = jobs("edit", str(job.pk), "--arguments", '{"wrong": 8}')
    assert ran.status == 1
    assert "wrong" in ran.error


def test_a_dry_run_edits_nothing(job):
    before = JobPayload.objects.get(pk=job.pk).arguments

    assert jobs("edit", str(job.pk), "--arguments", '{"left": 8}', "--dry-run").status == 0
    assert JobPayload.objects.get(pk=job.pk).arguments == before
    assert not AuditEntry.objects.exists()


def test_arguments_may_come_from_stdin(job, monkeypatch):
    monkeypatch.setattr("sys.stdin", Typed('{"left": 9}'))

    assert jobs("edit", str(job.pk), "--arguments", "-").status == 0
    assert JobPayload.objects.get(pk=job.pk).arguments["left"] == 9


def test_a_clone_is_a_new_job(job):
    factories.QueueFactory(name="other")

    ran = jobs("clone", str(job.pk), "--queue", "other", "--json")

    [new] = ran.json["created"]
    assert new != job.pk
    assert Job.objects.get(pk=new).queue.name == "other"
    assert f"as {new + 1}." in jobs("clone", str(job.pk), terminal=True).out


def test_a_dry_run_clones_nothing(job):
    ran = jobs("clone", str(job.pk), "--dry-run", "--json")

    assert (ran.status, ran.json["created"]) == (0, [])
    assert Job.objects.count() == 1


@pytest.mark.parametrize(
    "words",
    [["edit", "--arguments", '{"left": 8}', "1"], ["clone", "1"], ["enqueue", "tests.forget"]],
    ids=["edit", "clone", "enqueue"],
)
def test_a_user_without_the_permission_is_refused(job, words):
    make_user("ada", "cancel_job")
    assert job.pk == 1

    assert jobs(*words, "--as", "ada").status == 4
    assert Job.objects.count() == 1
    assert not AuditEntry.objects.exists()


def test_a_job_is_enqueued_by_hand_in_the_name_of_who_asked():
    make_user("ada", "enqueue_job")
    words = ["--arguments", '{"left": 1}', "--queue", "bulk", "--priority", "7", "--at", "2h", "--as", "ada"]

    ran = jobs("enqueue", "tests.add", *words, "--reason", "by hand")

    [row] = ran.rows
    job = Job.objects.get()
    assert row == [str(job.pk), "created", ""]
    assert (job.queue.name, job.priority, job.state) == ("bulk", 7, JobState.SCHEDULED)
    assert (job.payload.arguments["left"], job.payload.created_by) == (1, "ada")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor, entry.source, entry.reason) == ("job.enqueue", "ada", "command", "by hand")
    assert f"1 job enqueued: {job.pk + 1}." in jobs("enqueue", "tests.forget", terminal=True).out


def test_a_dry_run_enqueues_nothing_and_checks_everything():
    tried = jobs("enqueue", "tests.add", "--arguments", '{"left": 1}', "--dry-run")
    assert (tried.status, tried.rows) == (0, [["tests.add", "would change", ""]])
    assert jobs("enqueue", "tests.add", "--arguments", "{}", "--dry-run").status == 1
    assert not Job.objects.exists()
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tests.add"], "left"),
        (["tests.ad"], "tests.add"),
        (["tests.forget", "--max-attempts", "0"], "max_attempts"),
        (["tests.forget", "--queue", "a b"], "queue"),
        (["pgbroker.change_jobs"], "of the broker itself"),
    ],
)
def test_what_cannot_be_enqueued_is_refused(words, told):
    ran = jobs("enqueue", *words)

    assert ran.status == 1
    assert told in ran.error
    assert not Job.objects.exists()


@pytest.mark.parametrize("words", [["show"], ["clone"]], ids=["show", "clone"])
def test_an_unknown_job_changes_nothing(words):
    ran = jobs(*words, "999")

    assert ran.status == 5
    assert "there is no job 999" in ran.error
