"""Pausing and resuming a queue, with its audit entry in the same transaction."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db import connection, transaction

from django_pgbroker import InvalidName, InvalidOption, UnknownQueue, pause_queue, resume_queue
from django_pgbroker.domain.errors import NotPermitted
from django_pgbroker.models import AuditEntry, Queue
from tests.factories import ArchivedJobFactory, ExecutionFactory, JobFactory, QueueFactory
from tests.maintenance.waiting import wait_until
from tests.operations.beside import beside

PAGE = Path(__file__).parents[2] / "docs/how-to/queues.md"

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue():
    return QueueFactory(name="receipts")


def test_pausing_says_who_when_and_why_on_the_queue_and_in_the_audit(queue):
    assert pause_queue("receipts", actor="ada", reason="the printer burns", source="admin") is True

    queue.refresh_from_db()
    assert queue.paused_at is not None
    assert (queue.paused_by, queue.pause_reason) == ("ada", "the printer burns")
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.source, entry.action) == ("ada", "admin", "queue.pause")
    assert (entry.target, entry.reason) == ({"queue": "receipts"}, "the printer burns")
    assert entry.before == {"paused_at": None}
    assert entry.after["paused_at"]


def test_resuming_records_the_pause_it_ends(queue):
    pause_queue("receipts", actor="ada", reason="the printer burns")
    assert resume_queue("receipts", actor="grace") is True

    queue.refresh_from_db()
    assert (queue.paused_at, queue.paused_by, queue.pause_reason) == (None, None, None)
    entry = AuditEntry.objects.latest("id")
    assert (entry.actor, entry.source, entry.action) == ("grace", "code", "queue.resume")
    assert (entry.before["paused_by"], entry.before["pause_reason"]) == ("ada", "the printer burns")
    assert entry.after == {"paused_at": None}


def test_a_second_pause_in_the_same_way_changes_nothing_and_is_not_audited(queue):
    pause_queue("receipts", actor="ada")
    first = Queue.objects.get(name="receipts").paused_at

    assert pause_queue("receipts", actor="grace") is False
    assert Queue.objects.get(name="receipts").paused_at == first
    assert AuditEntry.objects.count() == 1


def test_a_second_pause_with_another_reason_or_end_takes_the_place_of_the_first_one(queue):
    until = datetime.now(UTC) + timedelta(hours=3)
    pause_queue("receipts", actor="ada", reason="the printer burns", until=until)
    first = Queue.objects.get(name="receipts")
    assert first.resume_at == until

    assert pause_queue("receipts", actor="ada", reason="the printer burns", until=until) is False
    assert pause_queue("receipts", actor="grace", reason="and the office") is True

    queue.refresh_from_db()
    assert (queue.paused_at, queue.paused_by, queue.pause_reason) == (first.paused_at, "grace", "and the office")
    assert queue.resume_at is None, "grace did not say that it ends"
    entry = AuditEntry.objects.latest("id")
    assert (entry.before["paused_by"], entry.before["pause_reason"]) == ("ada", "the printer burns")
    assert datetime.fromisoformat(entry.before["resume_at"]) == until
    assert (entry.after["paused_by"], entry.after["pause_reason"]) == ("grace", "and the office")
    assert entry.after["resume_at"] is None
    assert AuditEntry.objects.count() == 2


@pytest.mark.parametrize("until", [timedelta(minutes=5), 300, 300.0])
def test_a_pause_may_end_after_a_span(queue, until):
    pause_queue("receipts", actor="ada", until=until)
    queue.refresh_from_db()
    assert queue.resume_at - queue.paused_at == timedelta(minutes=5)
    assert AuditEntry.objects.get().after["resume_at"]


def test_a_span_gives_a_pause_without_an_end_one(queue):
    pause_queue("receipts", actor="ada")
    assert pause_queue("receipts", actor="ada", until=60) is True
    queue.refresh_from_db()
    assert queue.resume_at is not None
    assert resume_queue("receipts", actor="ada") is True
    queue.refresh_from_db()
    assert queue.resume_at is None


@pytest.mark.parametrize(
    "until", [0, -1, "tomorrow", True, datetime(2001, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)]
)
def test_an_end_that_is_over_or_none_is_refused(queue, until):
    with pytest.raises(InvalidOption, match="until"):
        pause_queue("receipts", actor="ada", until=until)
    assert not Queue.objects.filter(paused_at__isnull=False).exists()


@pytest.mark.parametrize("verb", [pause_queue, resume_queue])
def test_who_may_not_changes_nothing_and_leaves_no_entry(queue, verb):
    if verb is resume_queue:
        pause_queue("receipts", actor="ada")
    before = AuditEntry.objects.count()
    for user in (User.objects.create_user("eve"), AnonymousUser()):
        with pytest.raises(NotPermitted, match=r"'django_pgbroker\.pause_queue'"):
            verb("receipts", actor=user)
    queue.refresh_from_db()
    assert queue.is_paused is (verb is resume_queue)
    assert AuditEntry.objects.count() == before


def test_who_has_the_permission_may_and_is_named(queue):
    ada = User.objects.create_user("ada")
    ada.user_permissions.add(Permission.objects.get(codename="pause_queue"))
    ada = User.objects.get(pk=ada.pk)
    assert pause_queue("receipts", actor=ada) is True
    assert resume_queue("receipts", actor=ada) is True
    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {"ada"}


@pytest.mark.django_db(transaction=True)
def test_a_resume_beside_a_pause_that_is_not_committed_finds_nothing_to_resume(observer, second_alias):
    QueueFactory(name="receipts")
    with transaction.atomic():
        assert pause_queue("receipts", actor="ada") is True
        assert resume_queue("receipts", actor="grace", using=second_alias) is False
    assert Queue.objects.get(name="receipts").is_paused
    assert AuditEntry.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_resume_that_meets_a_pause_ends_it_and_the_audit_tells_both_in_order(observer):
    QueueFactory(name="receipts")
    assert pause_queue("receipts", actor="ada", reason="fire") is True
    with beside(lambda: resume_queue("receipts", actor="grace")) as (rival, answers), transaction.atomic():
        pause_queue("receipts", actor="ada", reason="smoke")
        rival.start()
        waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%queue.resume%'"
        wait_until(lambda: observer.value(waiting), "the rival waits for the row")
    assert answers == [True]
    assert not Queue.objects.get(name="receipts").is_paused
    entries = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert entries == ["queue.pause", "queue.pause", "queue.resume"]
    assert AuditEntry.objects.latest("id").before["pause_reason"] == "smoke"


def test_resuming_a_queue_that_runs_changes_nothing_and_is_not_audited(queue):
    assert resume_queue("receipts", actor="ada") is False
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("verb", [pause_queue, resume_queue])
def test_a_queue_that_does_not_exist_is_refused_with_the_closest_name(verb, queue):
    with pytest.raises(UnknownQueue, match="Did you mean 'receipts'"):
        verb("receits", actor="ada")
    assert AuditEntry.objects.count() == 0


@pytest.mark.parametrize("name", ["a'b", "x; DROP TABLE y--", "%s", "two words", "", "a" * 101])
def test_a_name_that_no_queue_can_have_is_refused(name):
    with pytest.raises(InvalidName):
        pause_queue(name, actor="ada")


@pytest.mark.parametrize(
    "words", [{"actor": ""}, {"actor": None}, {"actor": "a\x00"}, {"actor": "a", "reason": "x" * 201}]
)
def test_an_audit_entry_has_words_that_can_be_read(words, queue):
    with pytest.raises(InvalidOption):
        pause_queue("receipts", **words)
    assert Queue.objects.get(name="receipts").paused_at is None


def test_a_rollback_takes_the_pause_and_its_audit_entry_back(queue):
    with transaction.atomic():
        pause_queue("receipts", actor="ada")
        transaction.set_rollback(True)

    assert Queue.objects.filter(name="receipts", paused_at__isnull=False).count() == 0
    assert AuditEntry.objects.count() == 0


@pytest.fixture
def delete_as_the_page_says():
    """The statements of the page that shows how a queue is removed."""
    [block] = re.findall(r"```sql\nbegin;\n(.*?)commit;\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)

    def delete():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(block)

    return delete


def test_a_queue_that_nothing_belongs_to_is_removed_as_the_page_says_and_no_other(queue, delete_as_the_page_says):
    QueueFactory(name="mial")
    delete_as_the_page_says()
    assert not Queue.objects.filter(name="mial").exists()
    assert Queue.objects.filter(pk=queue.pk).exists()


@pytest.mark.parametrize("make", [JobFactory, ArchivedJobFactory, ExecutionFactory])
def test_a_queue_that_something_belongs_to_stays_whatever_the_page_says(make, delete_as_the_page_says):
    typo = QueueFactory(name="mial")
    make(queue=typo)
    delete_as_the_page_says()
    assert Queue.objects.filter(pk=typo.pk).exists()
