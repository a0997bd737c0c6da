"""Workers that take some job types only, and workers that serve their queues in strict order."""

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import Worker
from django_pgbroker.registry import registry
from tests.maintenance.waiting import wait_until


def test_a_worker_takes_the_chosen_types_only_and_ends_when_nothing_is_left_for_it(declare, run_until_empty):
    mail = declare("mail.send")(lambda: "sent")
    charge = declare("shop.charge")(lambda: "charged")
    mine, others = [mail.enqueue() for _ in range(3)], [charge.enqueue() for _ in range(3)]

    assert run_until_empty(types=("mail.*",)) == 0

    assert [handle.result() for handle in mine] == ["sent"] * 3
    assert {handle.status() for handle in others} == {JobState.PENDING}
    worker = Worker.objects.get()
    assert len(worker.job_type_ids) == 1

    assert run_until_empty(exclude_types=("mail.*",)) == 0
    assert [handle.result() for handle in others] == ["charged"] * 3
    assert len(Worker.objects.latest("id").job_type_ids) == len(registry.all()) - 1


def test_in_strict_order_the_first_queue_is_done_before_the_second_gets_anything(declare, run_until_empty):
    order = []

    @declare("tests.note")
    def note(queue):
        order.append(queue)

    for _ in range(30):
        note.using(queue="second").enqueue(queue="second")
        note.using(queue="first").enqueue(queue="first")

    assert run_until_empty("first,second", 1, is_strict=True) == 0

    assert order == ["first"] * 30 + ["second"] * 30


def test_in_strict_order_a_job_overtakes_the_backlog_of_a_later_queue_without_a_notification(declare, start, settings):
    """The earlier queue is not due for a long while: it is asked all the same."""
    settings.PGBROKER = {"POLL_MAX_SECONDS": 300, "POLL_MIN_SECONDS": 60, "LISTEN": False, "PREFETCH_LIMIT": 0}
    order = []
    urgent = declare("tests.urgent")(lambda: order.append("first"))

    @declare("tests.slow")
    def slow(number):
        order.append("second")
        if number == 5:
            urgent.using(queue="first").enqueue()

    for number in range(20):
        slow.using(queue="second").enqueue(number=number)

    worker = start("first,second", 1, is_strict=True)
    wait_until(lambda: len(order) == 21, "all have run")
    worker.drain()

    assert order.index("first") == 6
