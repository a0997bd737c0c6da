"""A queue's ageing, and the jobs that are brought into the order it says, whatever else goes on."""

import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from django_pgbroker import BrokerDatabaseError, InvalidOption, UnknownQueue
from django_pgbroker.domain.errors import NotPermitted
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import AuditEntry, Job, Queue
from django_pgbroker.operations import reordering
from django_pgbroker.operations.queues import set_queue
from django_pgbroker.runtime.new_names import declare_names
from operations import jobs
from tests.factories import JobFactory, QueueFactory
from tests.operations.beside import beside

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def queue(broker_database):
    return QueueFactory(name="mail", ageing_seconds=60)


def astray(queue="mail"):
    """Jobs whose place is not the one that the ageing of their queue says."""
    return [
        job.pk
        for job in Job.objects.filter(queue__name=queue).annotate(ageing=F("queue__ageing_seconds"))
        if job.claim_order != job.available_at - timedelta(seconds=job.priority * job.ageing)
    ]


def audited():
    return list(AuditEntry.objects.order_by("id").values_list("action", "before", "after", "count"))


def test_all_live_jobs_of_the_queue_move_and_no_others(queue, monkeypatch):
    monkeypatch.setattr(reordering, "_BATCH", 3)
    live = [JobState.PENDING, JobState.SCHEDULED, JobState.BLOCKED, JobState.PARKED]
    moved = [JobFactory(queue=queue, state=state, priority=p).pk for state in live for p in (-5, 10)]
    running = JobFactory(queue=queue, state=JobState.RUNNING, lease_token=7, priority=10)
    kept = JobFactory(queue=queue, priority=0)
    other = JobFactory(queue=QueueFactory(name="other"), priority=10)
    before = dict(Job.objects.values_list("pk", "claim_order"))

    change = set_queue("mail", ageing_seconds=10, actor="ada", reason="too slow", source="command")

    assert change == (True, len(moved) + 1, True)
    assert astray() == []
    after = dict(Job.objects.values_list("pk", "claim_order"))
    assert {pk for pk in after if after[pk] != before[pk]} == {*moved, running.pk}
    assert after[kept.pk] == before[kept.pk]
    assert after[other.pk] == before[other.pk]
    assert Job.objects.get(pk=running.pk).lease_token == 7
    assert audited() == [
        ("queue.set", {"ageing_seconds": 60}, {"ageing_seconds": 10}, 1),
        ("queue.set", None, {"ageing_seconds": 10, "reordered": 9}, 9),
    ]
    entry = AuditEntry.objects.latest("id")
    assert (entry.actor, entry.source, entry.reason, entry.target) == ("ada", "command", "too slow", {"queue": "mail"})


@pytest.fixture
def passed(monkeypatch):
    """Set as soon as some pass over the jobs has been made."""
    event = threading.Event()

    def pass_over(gateway, name):
        found = original(gateway, name)
        event.set()
        return found

    original = reordering._pass_over
    monkeypatch.setattr(reordering, "_pass_over", pass_over)
    return event


def test_the_same_value_again_does_what_a_killed_process_left_and_else_nothing(queue, monkeypatch):
    for _ in range(4):
        JobFactory(queue=queue, priority=10)
    batches = []

    def die(gateway, name, after, batch):
        if batches:
            raise KeyboardInterrupt
        batches.append(after)
        return original(gateway, name, after, batch)

    original = reordering.reorder_jobs
    monkeypatch.setattr(reordering, "_BATCH", 2)
    monkeypatch.setattr(reordering, "reorder_jobs", die)
    with pytest.raises(KeyboardInterrupt):
        set_queue("mail", ageing_seconds=10, actor="ada")
    monkeypatch.setattr(reordering, "reorder_jobs", original)
    assert Queue.objects.get(name="mail").ageing_seconds == 10
    assert len(astray()) == 2

    assert set_queue("mail", ageing_seconds=10, actor="ada") == (False, 2, True)
    assert astray() == []
    assert set_queue("mail", ageing_seconds=10, actor="ada") == (False, 0, True)
    assert [entry[3] for entry in audited()] == [1, 2], "what changes nothing is not audited"


def test_a_job_that_was_enqueued_before_the_change_and_committed_after_it_moves_too(passed):
    """The ageing it was given is the old one, and no statement can see it before its commit."""
    with beside(lambda: set_queue("mail", ageing_seconds=10, actor="ada")) as (setter, answers), transaction.atomic():
        jobs.add.using(queue="mail", priority=50).enqueue(1)
        setter.start()
        assert passed.wait(20), "it is changed, and one pass has not seen the job"
    assert answers == [(True, 1, True)]
    assert astray() == []


def test_a_transaction_that_stays_open_is_not_waited_for_for_ever(observer, second_alias, monkeypatch):
    monkeypatch.setattr(reordering, "_PATIENCE_SECONDS", (0.0, 0.3))
    seen = JobFactory(queue=Queue.objects.get(name="mail"), priority=10)
    with transaction.atomic():
        jobs.add.using(queue="mail", priority=50).enqueue(1)
        assert set_queue("mail", ageing_seconds=10, actor="ada", using=second_alias) == (True, 1, False)
    assert seen.pk not in astray()
    assert len(astray()) == 1, "it shows only now"
    assert set_queue("mail", ageing_seconds=10, actor="ada") == (False, 1, True)
    assert astray() == []


def test_a_job_that_is_enqueued_after_the_change_has_its_place_at_once():
    set_queue("mail", ageing_seconds=10, actor="ada")
    jobs.add.using(queue="mail", priority=50).enqueue(1)
    assert astray() == []


def test_a_row_that_somebody_holds_is_come_back_to(queue, observer, passed):
    job = JobFactory(queue=queue, priority=10)
    setting = beside(lambda: set_queue("mail", ageing_seconds=10, actor="ada"))
    with setting as (setter, answers), observer.connection.transaction():
        observer.connection.execute("select 1 from pgbroker.job where id = %s for no key update", [job.pk])
        setter.start()
        assert passed.wait(20)
        assert astray() == [job.pk]
    assert answers == [(True, 1, True)]
    assert astray() == []


def test_in_the_callers_transaction_all_of_it_is_the_callers(queue):
    job = JobFactory(queue=queue, priority=10)
    with transaction.atomic():
        assert set_queue("mail", ageing_seconds=10, actor="ada") == (True, 1, False)
        transaction.set_rollback(True)
    assert Queue.objects.get(name="mail").ageing_seconds == 60
    assert Job.objects.get(pk=job.pk).claim_order == job.claim_order
    assert audited() == []


def test_what_the_settings_declare_is_for_a_new_row_and_undoes_no_change(settings):
    set_queue("mail", ageing_seconds=10, actor="ada")
    settings.PGBROKER = {"QUEUES": {"mail": {"ageing_seconds": 5}, "fresh": {"ageing_seconds": 5}, "default": {}}}
    for name in ("mail", "fresh"):
        jobs.add.using(queue=name, priority=50).enqueue(1)
        declare_names("default", queues=[name])
    found = Queue.objects.filter(name__in=["mail", "fresh"]).values_list("name", "ageing_seconds")
    assert dict(found) == {"mail": 10, "fresh": 5}


@pytest.mark.parametrize("seconds", [-1, 1_000_001, 1.5, "10", None, True])
def test_a_number_that_no_ageing_can_be_is_refused(seconds):
    with pytest.raises(InvalidOption, match="ageing_seconds must be a whole number from 0 to 1,000,000"):
        set_queue("mail", ageing_seconds=seconds, actor="ada")
    assert Queue.objects.get(name="mail").ageing_seconds == 60


def test_a_queue_that_does_not_exist_is_refused_with_the_closest_name():
    with pytest.raises(UnknownQueue, match="Did you mean 'mail'"):
        set_queue("mial", ageing_seconds=10, actor="ada")
    assert audited() == []


def test_who_may_not_changes_nothing_and_leaves_no_entry(queue):
    job = JobFactory(queue=queue, priority=10)
    with pytest.raises(NotPermitted, match=r"'eve' is not permitted to do 'queue.set' in queue 'mail'"):
        set_queue("mail", ageing_seconds=10, actor=User.objects.create_user("eve"))
    assert Queue.objects.get(name="mail").ageing_seconds == 60
    assert Job.objects.get(pk=job.pk).claim_order == job.claim_order
    assert audited() == []


def test_a_transaction_that_has_failed_says_so():
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(BrokerDatabaseError, match="An earlier statement of this transaction failed"):
            set_queue("mail", ageing_seconds=10, actor="ada")
