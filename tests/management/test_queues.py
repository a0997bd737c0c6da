"""What ``pgbroker_queues`` prints and does: pauses with an end, ageing, a purge that is tried and confirmed."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import AuditEntry, Job, Queue
from django_pgbroker.operations import reordering
from tests.factories import JobFactory, QueueFactory
from tests.management.commands import HOSTILE, has_control_characters, make_user, run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def mail(broker_database):
    return QueueFactory(name="mail", ageing_seconds=60)


def queues(*arguments, **options):
    return run("pgbroker_queues", *arguments, **options)


def test_the_list_shows_counts_the_ageing_and_who_paused_until_when(mail):
    until = datetime(2999, 1, 2, 3, 4, 5, tzinfo=UTC)
    Queue.objects.filter(pk=mail.pk).update(
        pending_count=7, oldest_pending_at=timezone.now() - timedelta(minutes=3), running_count=1,
        scheduled_count=100_001, parked_count=0, blocked_count=0, paused_at=timezone.now(), paused_by="ada",
        pause_reason="the relay is down", resume_at=until,
    )  # fmt: skip
    QueueFactory(name="idle", ageing_seconds=10)
    assert queues("list").rows == [
        [
            "mail",
            "7",
            "3 min",
            "1",
            "100,000+",
            "0",
            "0",
            "60 s",
            "by ada",
            "2999-01-02T03:04:05Z",
            "the relay is down",
        ],
        ["idle", "?", "", "?", "?", "?", "?", "10 s", "", "", ""],
    ]
    [first, second] = queues("list", "--json").json["queues"]
    assert (first["name"], first["is_paused"], first["ageing_seconds"]) == ("mail", True, 60)
    assert first["resume_at"] == "2999-01-02T03:04:05+00:00"
    assert (second["name"], second["is_paused"], second["pending"]) == ("idle", False, None)
    assert "queue" in queues("list", terminal=True).out.splitlines()[0]


def test_a_list_without_queues_says_so_to_people_and_is_a_head_line_to_programs():
    Queue.objects.all().delete()
    assert queues("list", terminal=True).out == "No queue yet.\n"
    assert queues("list").rows == []
    assert queues("list", "--json").json == {"queues": []}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_pause_is_obeyed_by_the_terminal(mail, text):
    Queue.objects.update(paused_at=timezone.now(), paused_by=text, pause_reason=text)
    for terminal in (True, False):
        ran = queues("list", terminal=terminal)
        assert ran.status == 0
        assert not has_control_characters(ran.out)
    assert len(queues("list").out.splitlines()) == 2


def test_a_pause_and_its_end_and_a_resume_are_audited(mail):
    ran = queues("pause", "mail", "--reason", "the relay is down", "--until", "2h", "--json")
    assert ran.status == 0
    assert (ran.json["verb"], ran.json["changed"]) == ("queue.pause", 1)
    mail.refresh_from_db()
    assert mail.resume_at - mail.paused_at == timedelta(hours=2)
    assert mail.pause_reason == "the relay is down"
    assert mail.paused_by.startswith("system (")

    assert queues("resume", "mail").rows == [["mail", "changed", ""]]
    mail.refresh_from_db()
    assert not mail.is_paused
    assert list(AuditEntry.objects.order_by("id").values_list("action", "source")) == [
        ("queue.pause", "command"),
        ("queue.resume", "command"),
    ]
    assert queues("pause", "mail", terminal=True).out == "1 queue paused: mail.\n"


def test_a_change_that_is_none_says_so_by_its_status(mail):
    ran = queues("resume", "mail")
    assert (ran.status, ran.error) == (5, "the queue 'mail' is not paused: nothing was changed")
    queues("pause", "mail")
    ran = queues("pause", "mail")
    assert (ran.status, ran.error) == (5, "the queue 'mail' is paused in this way already: nothing was changed")


@pytest.mark.parametrize("words", [["pause"], ["resume"], ["set", "--ageing", "5"], ["purge", "--yes"]])
def test_a_queue_that_does_not_exist_is_an_error_with_the_closest_name(words):
    ran = queues(words[0], "mial", *words[1:])
    assert ran.status == 1
    assert "there is no queue 'mial'. Did you mean 'mail'?" in ran.error
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("until", "why"),
    [("soon", "is neither"), ("2026-11-30T08:00", "has no time zone"), ("2001-01-01T00:00Z", "must lie ahead")],
)
def test_an_end_that_is_no_time_to_come_is_refused(mail, until, why):
    ran = queues("pause", "mail", "--until", until)
    assert ran.status == 1
    assert why in ran.error
    mail.refresh_from_db()
    assert not mail.is_paused


VERBS = [
    (["pause"], "pause_queue"),
    (["resume"], "pause_queue"),
    (["set", "--ageing", "5"], "set_queue"),
    (["purge", "--yes"], "purge_queue"),
]


@pytest.mark.parametrize(("words", "permission"), VERBS, ids=lambda value: value[0] if isinstance(value, list) else "")
@pytest.mark.parametrize("trial", [[], ["--dry-run"]], ids=["act", "trial"])
def test_as_a_user_its_permission_decides(mail, words, permission, trial):
    job = JobFactory(queue=mail, priority=10)
    if words == ["resume"]:
        Queue.objects.update(paused_at=timezone.now())
    make_user("eve")
    before = Queue.objects.values().get()
    ran = queues(words[0], "mail", *words[1:], *trial, "--as", "eve")
    assert ran.status == 4
    assert f"'django_pgbroker.{permission}'" in ran.error
    assert Queue.objects.values().get() == before
    assert Job.objects.get().claim_order == job.claim_order
    assert not AuditEntry.objects.exists()

    make_user("ada", permission)
    assert queues(words[0], "mail", *words[1:], *trial, "--as", "ada").status == 0
    assert set(AuditEntry.objects.values_list("actor", flat=True)) == (set() if trial else {"ada"})
    assert (Queue.objects.values().get() == before and Job.objects.count() == 1) is bool(trial)


def test_the_ageing_is_changed_and_the_jobs_have_another_place(mail):
    job = JobFactory(queue=mail, priority=10)
    assert queues("set", "mail", "--ageing", "10", "--dry-run").rows == [["mail", "would be changed", "0"]]
    assert Job.objects.get().claim_order == job.claim_order

    ran = queues("set", "mail", "--ageing", "10", "--json")
    assert ran.status == 0
    assert ran.json == {
        "verb": "queue.set", "is_dry_run": False, "is_changed": True, "reordered": 1, "is_complete": True,
    }  # fmt: skip
    assert Job.objects.get().claim_order == job.available_at - timedelta(seconds=100)
    ran = queues("set", "mail", "--ageing", "10")
    assert (ran.status, ran.rows) == (5, [["mail", "unchanged", "0"]])
    assert queues("set", "mail", "--ageing", "7", terminal=True).out == (
        "ageing of mail changed: 7 s; 1 jobs have another place now.\n"
    )


def test_jobs_that_may_be_left_in_the_old_order_are_told(mail, rival, monkeypatch):
    monkeypatch.setattr(reordering, "_PATIENCE_SECONDS", (0.0,))
    with rival.transaction():
        rival.connection.execute("update pgbroker.job set priority = 0 where false")
        ran = queues("set", "mail", "--ageing", "10")
    assert ran.status == 3
    assert "Run this again later, with the same value" in ran.error
    mail.refresh_from_db()
    assert mail.ageing_seconds == 10


@pytest.mark.parametrize("trial", [[], ["--dry-run"]], ids=["act", "trial"])
def test_a_number_that_no_ageing_can_be_is_an_error(mail, trial):
    ran = queues("set", "mail", "--ageing", "-1", *trial)
    assert (ran.status, ran.error[:44]) == (1, "ageing_seconds must be a whole number from 0")


def test_a_purge_is_tried_asks_and_cancels_what_is_pending_alone(mail):
    pending = [JobFactory(queue=mail).pk for _ in range(3)]
    kept = JobFactory(queue=mail, state=JobState.SCHEDULED)
    other = JobFactory(queue=QueueFactory(name="other"))

    refused = queues("purge", "mail")
    assert refused.status == 4
    assert "give --yes" in refused.error
    assert sorted(int(row[0]) for row in queues("purge", "mail", "--dry-run").rows) == pending
    assert Job.objects.count() == 5

    ran = queues("purge", "mail", "--yes", "--reason", "a typing error", "--json")
    assert (ran.status, ran.json["changed"]) == (0, 3)
    assert set(Job.objects.values_list("pk", flat=True)) == {kept.pk, other.pk}
    assert queues("purge", "mail", "--yes").status == 5
