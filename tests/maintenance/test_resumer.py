"""A pause that has an end is over then, by a duty."""

import logging

import pytest
from django.db import transaction

from django_pgbroker import pause_queue
from django_pgbroker.maintenance.resumer import Resumer
from django_pgbroker.maintenance.runner import DutyReport
from django_pgbroker.models import AuditEntry, Queue
from tests.maintenance.test_runner import run_once


@pytest.fixture
def queues(rows):
    for name in ("due", "later", "open"):
        rows.queue(name)
    pause_queue("due", actor="ada", reason="the relay is down", until=3600)
    pause_queue("later", actor="ada", until=3600)
    pause_queue("open", actor="ada")
    rows.run("update pgbroker.queue set resume_at = now() - interval '1 s' where name = 'due'")


def paused():
    return set(Queue.objects.filter(paused_at__isnull=False).values_list("name", flat=True))


def test_a_queue_whose_time_has_come_is_resumed_audited_and_announced_and_no_other(queues, gateway):
    swept = Resumer().tick(gateway, batch=10)

    assert (swept.moved, swept.has_more, swept.woken_queues) == (1, False, {"due"})
    assert paused() == {"later", "open"}
    queue = Queue.objects.get(name="due")
    assert (queue.paused_by, queue.pause_reason, queue.resume_at) == (None, None, None)
    entry = AuditEntry.objects.latest("id")
    assert (entry.actor, entry.source, entry.action) == ("pgbroker", "duty", "queue.resume")
    assert entry.target == {"queue": "due"}
    assert (entry.before["paused_by"], entry.before["pause_reason"]) == ("ada", "the relay is down")
    assert entry.after == {"paused_at": None}
    assert Resumer().tick(gateway, batch=10).moved == 0


def test_it_is_told_when_it_is_committed(queues, heard, caplog):
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        assert run_once(Resumer) == [DutyReport("resumer", 1)]
    assert "queue.resumed: its pause was to end by now (queue=due)" in caplog.text
    assert heard() == {"due"}


@pytest.mark.django_db(transaction=True)
def test_a_pause_that_is_being_prolonged_is_left_to_who_does_it(queues, gateway):
    with transaction.atomic():
        pause_queue("due", actor="grace", reason="still down", until=3600)
        assert Resumer().tick(gateway, batch=10).moved == 0, "it neither waits nor resumes"
    assert Resumer().tick(gateway, batch=10).moved == 0
    assert paused() == {"due", "later", "open"}


@pytest.mark.django_db(transaction=True)
def test_of_a_duty_and_an_operator_one_resumes(queues, gateway, rival):
    with gateway.transaction():
        assert Resumer().tick(gateway, batch=10).moved == 1
        assert Resumer().tick(rival, batch=10).moved == 0
    assert AuditEntry.objects.filter(action="queue.resume").count() == 1
