"""Pausing and resuming a queue, with its audit entry in the same transaction."""

import re
from pathlib import Path

import pytest
from django.db import connection, transaction

from django_pgbroker import InvalidName, InvalidOption, UnknownQueue, pause_queue, resume_queue
from django_pgbroker.models import AuditEntry, Queue
from tests.factories import ArchivedJobFactory, ExecutionFactory, JobFactory, QueueFactory

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


def test_a_second_pause_changes_nothing_and_is_not_audited(queue):
    pause_queue("receipts", actor="ada")
    first = Queue.objects.get(name="receipts").paused_at

    assert pause_queue("receipts", actor="grace") is False
    assert Queue.objects.get(name="receipts").paused_at == first
    assert AuditEntry.objects.count() == 1


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
