"""What ``pgbroker_workers`` prints, and the orders that it writes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from django_pgbroker.models import AuditEntry, Worker
from tests.factories import WorkerFactory
from tests.management.commands import HOSTILE, has_control_characters, make_user, run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def one(broker_database):
    return WorkerFactory(name="w1", hostname="host", process_id=11, version="0.1.0", queues={"mail": 1, "bulk": 5},
                         concurrency=10, running_count=2, paused_queues=["bulk"])  # fmt: skip


def workers(*arguments, **options):
    return run("pgbroker_workers", *arguments, **options)


def test_the_list_shows_state_size_queues_and_orders(one):
    Worker.objects.update(ordered_concurrency=20, started_at=timezone.now() - timedelta(hours=2))
    WorkerFactory(name="gone", stopped_at=timezone.now(), stop_reason="stopped")
    [row] = workers("list").rows
    assert row == [
        str(one.pk), "w1", "alive", "just now", "2/10", "bulk:5, mail", "bulk", "20", "host", "11", "0.1.0", "2 h",
    ]  # fmt: skip
    [shown] = workers("list", "--json").json["workers"]
    assert (shown["id"], shown["presence"], shown["ordered_concurrency"]) == (one.pk, "alive", 20)
    assert (shown["queues"], shown["paused_queues"]) == ({"mail": 1, "bulk": 5}, ["bulk"])
    assert "leaves" in workers("list", terminal=True).out.splitlines()[0]


def test_a_list_without_workers_says_so():
    Worker.objects.all().delete()
    assert workers("list", terminal=True).out == "No worker runs.\n"
    assert workers("list").rows == []


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_is_obeyed_by_the_terminal(text):
    Worker.objects.update(name=text, hostname=text, version=text, queues={text: 1}, paused_queues=[text])
    for terminal in (True, False):
        ran = workers("list", terminal=terminal)
        assert ran.status == 0
        assert not has_control_characters(ran.out)
    assert len(workers("list").out.splitlines()) == 2


ORDERS = [
    (["drain"], "worker.drain", "drain_worker"),
    (["stop"], "worker.stop", "stop_worker"),
    (["set", "--concurrency", "20"], "worker.resize", "resize_worker"),
    (["pause-queue", "mail"], "worker.pause_queue", "pause_queue_on_worker"),
    (["resume-queue", "bulk"], "worker.resume_queue", "pause_queue_on_worker"),
]
each_order = pytest.mark.parametrize(
    ("words", "action", "permission"), ORDERS, ids=lambda value: value[0] if isinstance(value, list) else ""
)


def standing():
    fields = ("drain_requested_at", "stop_requested_at", "ordered_concurrency", "paused_queues")
    return Worker.objects.order_by("id").values_list(*fields).first()


@each_order
def test_an_order_is_tried_given_and_told_when_it_is_there_already(one, words, action, permission):
    before = standing()
    ran = workers(*words, str(one.pk), "--dry-run")
    assert (ran.status, ran.rows) == (0, [[str(one.pk), "would change", ""]])
    assert standing() == before

    ran = workers(*words, str(one.pk), "--reason", "a deploy", "--json")
    assert (ran.status, ran.json["verb"], ran.json["ids"]) == (0, action, [one.pk])
    assert standing() != before
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.source, entry.reason) == (action, "command", "a deploy")

    ran = workers(*words, str(one.pk))
    assert (ran.status, ran.rows) == (5, [[str(one.pk), "refused", "it has this order already"]])
    assert AuditEntry.objects.count() == 1


@each_order
def test_as_a_user_its_permission_decides(one, words, action, permission):
    before = standing()
    make_user("eve")
    ran = workers(*words, str(one.pk), "--as", "eve")
    assert ran.status == 4
    assert f"'django_pgbroker.{permission}'" in ran.error
    assert standing() == before
    assert not AuditEntry.objects.exists()
    make_user("ada", permission)
    assert workers(*words, str(one.pk), "--as", "ada").status == 0
    assert AuditEntry.objects.get().actor == "ada"


@each_order
def test_several_workers_are_confirmed_and_one_that_has_ended_holds_no_other_up(one, words, action, permission):
    ended = WorkerFactory(name="ended", stopped_at=timezone.now(), stop_reason="lost", queues={"mail": 1, "bulk": 1})
    ids = [str(one.pk), str(ended.pk)]
    assert workers(*words, *ids).status == 4
    assert not AuditEntry.objects.exists()

    ran = workers(*words, *ids, "--yes", "--json")
    assert (ran.status, ran.json["ids"], ran.json["refused"]) == (3, [one.pk], 1)
    [refusal] = ran.json["refusals"]
    assert refusal["id"] == ended.pk
    assert "has ended (lost)" in refusal["why"]


def test_one_that_never_was_is_refused_and_named():
    ran = workers("drain", "4711")
    assert ran.status == 5
    assert ran.rows[0][:2] == ["4711", "refused"]
    assert "there is no worker 4711" in ran.rows[0][2]


def test_a_worker_that_does_not_serve_the_queue_is_told_and_holds_no_other_up(one):
    other = WorkerFactory(name="w2", queues={"bulk": 1})
    ran = workers("pause-queue", "mail", str(one.pk), str(other.pk), "--yes", "--json")
    assert (ran.status, ran.json["ids"]) == (3, [one.pk])
    assert "the worker 'w2' does not serve the queue 'mail', but: bulk" in ran.json["refusals"][0]["why"]
    ran = workers("pause-queue", "mial", str(one.pk))
    assert ran.status == 5
    assert "does not serve the queue 'mial', but: bulk, mail. Did you mean 'mail'?" in ran.rows[0][2]


@pytest.mark.parametrize("words", [["drain", "w1"], ["drain", "0"], ["set", "1", "--concurrency", "0"]])
def test_what_is_no_id_or_no_size_is_refused(words):
    assert workers(*words).status in {1, 2}
    assert standing()[:3] == (None, None, None)


def test_a_person_reads_a_sentence(one):
    assert workers("drain", str(one.pk), terminal=True).out == f"1 worker asked to drain: {one.pk}.\n"
