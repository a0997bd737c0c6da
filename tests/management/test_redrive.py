"""``pgbroker_redrive``: dead letters go back by id or by filter, tried first, paced, or by a job of the broker."""

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, AuditEntry, Job
from tests import factories
from tests.management.commands import make_user, run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def empty(broker_database: None) -> None:
    """Every test counts from nothing."""


def redrive(*arguments: str, **options: bool):
    return run("pgbroker_redrive", *arguments, **options)


def make_dead(**fields: object):
    return factories.ArchivedJobFactory(dead=True, **fields)


def test_a_dead_letter_goes_back_as_the_same_job_with_all_attempts():
    dead = make_dead()

    ran = redrive(str(dead.pk), "--reason", "bank is back", terminal=True)

    assert ran.out == f"1 job redriven: {dead.pk}.\n"
    job = Job.objects.get(pk=dead.pk)
    assert (job.state, job.attempt) == (JobState.PENDING, 0)
    assert not ArchivedJob.objects.exists()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.source, entry.reason) == ("job.redrive", "command", "bank is back")


def test_attempts_are_kept_where_asked():
    dead = make_dead()

    assert redrive(str(dead.pk), "--keep-attempts").status == 0

    job = Job.objects.get(pk=dead.pk)
    assert (job.attempt, job.max_attempts) == (3, 4)


def test_a_filter_without_a_state_means_dead_letters():
    dead = make_dead()
    cancelled = factories.ArchivedJobFactory(state=JobState.CANCELLED)

    assert redrive("--queue", "default", "--yes", "--json").json["ids"] == [dead.pk]
    assert redrive("--state", "cancelled", "--yes", "--json").json["ids"] == [cancelled.pk]


def test_a_dry_run_sends_nothing_back():
    dead = make_dead()

    ran = redrive("--error", "no such", "--dry-run")

    assert ran.rows == [[str(dead.pk), "would change", ""]]
    assert ArchivedJob.objects.get().pk == dead.pk
    assert not AuditEntry.objects.exists()


def test_a_paced_redrive_is_left_to_a_job_of_the_broker_that_can_be_watched():
    make_dead(), make_dead()

    tried = redrive("--state", "dead", "--per-second", "5", "--dry-run", terminal=True)
    assert tried.out == "2 jobs would be redriven, by a job of the broker.\n"
    assert not Job.objects.exists()

    ran = redrive("--state", "dead", "--per-second", "5", "--yes", "--json")
    helper = Job.objects.get()
    assert (ran.status, ran.json["background_job_id"], ran.json["changed"]) == (0, helper.pk, 0)
    shown = run("pgbroker_jobs", "show", str(helper.pk), "--json").json
    assert (shown["type"], shown["arguments"]["options"]["per_second"]) == ("pgbroker.change_jobs", 5.0)


def test_a_paced_redrive_in_the_foreground_is_done_here():
    make_dead(), make_dead()

    ran = redrive("--state", "dead", "--per-second", "1000", "--foreground", "--yes", "--json")

    assert (ran.json["changed"], ran.json["background_job_id"]) == (2, None)
    assert Job.objects.count() == 2


def test_a_user_without_the_permission_is_refused():
    make_dead()
    make_user("ada", "cancel_job")

    for selection in (["--state", "dead", "--yes"], [str(ArchivedJob.objects.get().pk)]):
        ran = redrive(*selection, "--as", "ada")
        assert ran.status == 4
        assert "django_pgbroker.redrive_job" in ran.error
    assert not AuditEntry.objects.exists()
    assert not Job.objects.exists()


@pytest.mark.parametrize("pace", ["0", "-1", "nan", "inf", "1e9"])
def test_a_pace_that_is_none_is_refused(pace):
    ran = redrive("--state", "dead", "--per-second", pace, "--yes")

    assert ran.status == 1
    assert "per_second" in ran.error


def test_without_a_selection_nothing_is_meant():
    make_dead()

    ran = redrive("--yes")

    assert ran.status == 1
    assert "which jobs" in ran.error
    assert not Job.objects.exists()


def test_a_job_that_is_not_dead_is_refused_by_id():
    job = factories.JobFactory()

    ran = redrive(str(job.pk))

    assert ran.status == 5
    assert ran.rows[0][:2] == [str(job.pk), "refused"]
