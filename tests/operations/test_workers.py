"""Orders to workers: written into the row that their heartbeats read, audited, and refused where they make no sense."""

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction

from django_pgbroker import BrokerDatabaseError, InvalidName, InvalidOption
from django_pgbroker.domain.errors import NotPermitted, WorkerNotFound
from django_pgbroker.models import AuditEntry, Worker
from django_pgbroker.operations.workers import (
    drain_worker,
    pause_queue_on_worker,
    resize_worker,
    resume_queue_on_worker,
    stop_worker,
)
from django_pgbroker.store.workers import beat_worker
from tests.factories import WorkerFactory
from tests.maintenance.waiting import wait_until
from tests.operations.beside import beside

pytestmark = pytest.mark.django_db

ORDERS = {
    "worker.drain": drain_worker,
    "worker.stop": stop_worker,
    "worker.resize": lambda worker, **words: resize_worker(worker, 20, **words),
    "worker.pause_queue": lambda worker, **words: pause_queue_on_worker(worker, "mail", **words),
    "worker.resume_queue": lambda worker, **words: resume_queue_on_worker(worker, "bulk", **words),
}
AUDITED = {
    "worker.drain": ({"drain": False}, {"drain": True}),
    "worker.stop": ({"stop": False}, {"stop": True}),
    "worker.resize": ({"ordered_concurrency": None}, {"ordered_concurrency": 20}),
    "worker.pause_queue": ({"paused_queues": ["bulk"]}, {"paused_queues": ["bulk", "mail"]}),
    "worker.resume_queue": ({"paused_queues": ["bulk"]}, {"paused_queues": []}),
}
PERMISSIONS = {
    "worker.drain": "drain_worker",
    "worker.stop": "stop_worker",
    "worker.resize": "resize_worker",
    "worker.pause_queue": "pause_queue_on_worker",
    "worker.resume_queue": "pause_queue_on_worker",
}

every_order = pytest.mark.parametrize("name", ORDERS)


@pytest.fixture
def worker():
    return WorkerFactory(name="w1", queues={"mail": 1, "bulk": 5}, paused_queues=["bulk"])


def standing():
    return Worker.objects.values_list(
        "drain_requested_at", "stop_requested_at", "ordered_concurrency", "paused_queues"
    ).get()


@every_order
def test_an_order_is_written_and_audited_with_what_it_changes(worker, name):
    before = standing()
    assert ORDERS[name](worker.pk, actor="ada", reason="a deploy", source="command") is True

    assert standing() != before
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.source, entry.action, entry.reason) == ("ada", "command", name, "a deploy")
    assert entry.target == {"worker": worker.pk, "name": "w1"}
    assert (entry.before, entry.after) == AUDITED[name]


@every_order
def test_the_same_order_again_changes_nothing_and_is_not_audited(worker, name):
    ORDERS[name](worker.pk, actor="ada")
    before = standing()
    assert ORDERS[name](worker.pk, actor="grace") is False
    assert standing() == before
    assert AuditEntry.objects.count() == 1


@every_order
def test_who_may_not_changes_nothing_and_leaves_no_entry(worker, name):
    before = standing()
    with pytest.raises(NotPermitted, match=f"'django_pgbroker.{PERMISSIONS[name]}'"):
        ORDERS[name](worker.pk, actor=User.objects.create_user("eve"))
    assert standing() == before
    assert not AuditEntry.objects.exists()


@every_order
def test_who_has_the_permission_may(worker, name):
    ada = User.objects.create_user("ada")
    ada.user_permissions.add(Permission.objects.get(codename=PERMISSIONS[name]))
    assert ORDERS[name](worker.pk, actor=User.objects.get(pk=ada.pk)) is True
    assert AuditEntry.objects.get().actor == "ada"


@every_order
def test_a_worker_that_has_ended_or_never_was_is_not_found(worker, name):
    with pytest.raises(WorkerNotFound, match="there is no worker 4711; every start is a new one: pgbroker_workers"):
        ORDERS[name](4711, actor="ada")
    Worker.objects.update(stopped_at=worker.started_at, stop_reason="lost")
    with pytest.raises(WorkerNotFound, match=rf"the worker {worker.pk} \(w1\) has ended \(lost\)"):
        ORDERS[name](worker.pk, actor="ada")
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("order", [pause_queue_on_worker, resume_queue_on_worker])
def test_a_queue_that_the_worker_does_not_serve_is_refused_with_those_it_does(worker, order):
    with pytest.raises(InvalidOption, match="does not serve the queue 'mial', but: bulk, mail. Did you mean 'mail'"):
        order(worker.pk, "mial", actor="ada")
    with pytest.raises(InvalidName):
        order(worker.pk, "two words", actor="ada")
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("size", [0, -1, 10_001, 1.5, "3", None, True])
def test_a_size_that_no_worker_can_have_is_refused(worker, size):
    with pytest.raises(InvalidOption, match="concurrency must be a whole number from 1 to 10,000"):
        resize_worker(worker.pk, size, actor="ada")
    assert standing()[2] is None


@pytest.mark.parametrize("worker_id", [0, "1", None, 2**63, True])
def test_an_id_that_no_worker_can_have_is_refused(worker_id):
    with pytest.raises(InvalidOption, match="worker_id"):
        drain_worker(worker_id, actor="ada")


@pytest.mark.parametrize("words", [{"actor": ""}, {"actor": "a", "reason": "x" * 201}, {"actor": "a", "source": ""}])
def test_words_that_cannot_be_shown_are_refused(worker, words):
    with pytest.raises(InvalidOption):
        drain_worker(worker.pk, **words)
    assert standing()[0] is None


def test_a_rollback_takes_the_order_and_its_entry_back(worker):
    with transaction.atomic():
        drain_worker(worker.pk, actor="ada")
        transaction.set_rollback(True)
    assert standing()[0] is None
    assert not AuditEntry.objects.exists()


def test_a_transaction_that_has_failed_says_so(worker):
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(BrokerDatabaseError, match="An earlier statement of this transaction failed"):
            drain_worker(worker.pk, actor="ada")


@pytest.mark.django_db(transaction=True)
def test_two_orders_at_once_are_both_kept(observer):
    worker = WorkerFactory(queues={"mail": 1, "bulk": 5})
    ordering = beside(lambda: pause_queue_on_worker(worker.pk, "bulk", actor="grace"))
    with ordering as (rival, answers), transaction.atomic():
        pause_queue_on_worker(worker.pk, "mail", actor="ada")
        rival.start()
        waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%no key%'"
        wait_until(lambda: observer.value(waiting), "the rival waits for the row")
    assert answers == [True]
    assert standing()[3] == ["bulk", "mail"]
    assert AuditEntry.objects.latest("id").before == {"paused_queues": ["mail"]}


@pytest.mark.django_db(transaction=True)
def test_an_order_that_is_not_committed_holds_no_heartbeat_up(rival):
    worker = WorkerFactory(queues={"mail": 1})

    def beat():
        return beat_worker(rival, worker.pk, running_count=1, concurrency=10, wall_clock=0)

    with transaction.atomic():
        drain_worker(worker.pk, actor="ada")
        assert beat() is None, "it neither waits nor says anything"
    assert beat().drain is True
