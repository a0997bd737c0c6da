"""What receivers of the job signals hear, when, and that a bad one harms nobody."""

import asyncio
import threading
from collections import Counter
from dataclasses import replace

import pytest
from django.db import connection, transaction

from django_pgbroker import Cancel, Snooze, signals
from django_pgbroker.conf import get_settings
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.maintenance.reclaimer import Reclaimer
from django_pgbroker.models import ArchivedJob, Job
from django_pgbroker.registry import JobType
from django_pgbroker.runtime.signal_sender import Sending, SignalSender, flush_signals
from django_pgbroker.worker.start_signal import atell_started
from tests.maintenance.waiting import wait_until
from tests.worker.claims import make_claim
from tests.worker.links import make_loose_context

NAMES = [name for name in vars(signals) if name.startswith("job_")]


class Heard(list):
    """(signal, kwargs) in the order in which they came."""

    @property
    def names(self):
        return [name for name, _ in self]

    def of(self, name):
        return [kwargs for each, kwargs in self if each == name]


@pytest.fixture
def heard():
    heard = Heard()
    receivers = {}
    for name in NAMES:

        def receive(sender, signal, name=name, **kwargs):
            heard.append((name, {"sender": sender, "state": state_of(kwargs["job_id"]), **kwargs}))

        receivers[name] = receive
        getattr(signals, name).connect(receive)
    yield heard
    for name, receive in receivers.items():
        getattr(signals, name).disconnect(receive)


def state_of(job_id):
    """As another session sees it."""
    row = Job.objects.filter(pk=job_id).values_list("state").first()
    row = row or ArchivedJob.objects.filter(pk=job_id).values_list("state").first()
    return JobState(row[0]) if row else None


def test_a_job_that_succeeds(declare, run_until_empty, heard):
    @declare()
    def noop(ctx):
        return threading.get_ident()

    handle = noop.using(queue="mail", tenant="acme").enqueue()
    assert heard.names == ["job_enqueued"]
    run_until_empty("mail")

    assert heard.names == ["job_enqueued", "job_started", "job_succeeded"]
    common = {"sender": noop, "job_id": handle.id, "job_type": "tests.noop", "queue": "mail", "tenant": "acme"}
    enqueued, started, succeeded = (kwargs for _, kwargs in heard)
    assert enqueued == {**common, "attempt": 0, "using": "default", "state": JobState.PENDING}
    assert started == {**common, "attempt": 1, "state": JobState.RUNNING}
    assert 0 < succeeded.pop("run_seconds") < 5
    assert succeeded == {
        **common, "attempt": 1, "outcome": Outcome.COMPLETED, "reason": None, "error": None,
        "state": JobState.COMPLETED,
    }  # fmt: skip


def test_a_job_that_fails_and_is_retried_and_dies(declare, run_until_empty, heard):
    @declare(max_attempts=2)
    def fail():
        raise ValueError("wrong")

    fail.enqueue()
    run_until_empty()

    # the next attempt may begin before the receivers have heard of the one before
    after = [name for name in heard.names if name not in ("job_enqueued", "job_started")]
    assert after == ["job_failed", "job_retried", "job_failed", "job_dead"]
    assert [told["attempt"] for told in heard.of("job_started")] == [1, 2]
    assert heard.of("job_failed")[0]["error"].message == "wrong"
    assert heard.of("job_retried")[0]["delay_seconds"] == 0
    assert heard.of("job_dead")[0]["state"] is JobState.DEAD


def test_directives(declare, run_until_empty, heard):
    @declare()
    def decide(ctx, how: str):
        if how == "cancel":
            raise Cancel("not wanted")
        if Counter(heard.names)["job_started"] == 2:
            raise Snooze(1)

    decide.enqueue("cancel")
    run_until_empty()
    decide.enqueue("snooze")
    run_until_empty()

    assert heard.names == [
        "job_enqueued", "job_started", "job_cancelled",
        "job_enqueued", "job_started", "job_started", "job_succeeded",
    ]  # fmt: skip
    assert heard.of("job_cancelled")[0]["reason"] == "not wanted"


def test_a_job_that_is_cancelled_while_it_runs(declare, start, heard, gate, rows):
    @declare()
    def wait(ctx):
        gate.wait()
        ctx.raise_if_stopped()

    handle = wait.enqueue()
    worker = start(settings=quick_heartbeats())
    gate.wait_until_arrived()
    rows.run("update pgbroker.job set cancel_requested_at = now() where id = %s", handle.id)
    wait_until(lambda: worker.worker._shared.stops._stops, "it is noticed")
    gate.open()
    wait_until(lambda: handle.status() is JobState.CANCELLED, "it ends")
    worker.drain()

    assert heard.names[-1] == "job_cancelled"
    assert Counter(heard.names)["job_cancelled"] == 1


def quick_heartbeats():
    return replace(get_settings(), heartbeat_seconds=0.5, lease_seconds=10.0)


def test_an_async_handler_is_told_too(declare, run_until_empty, heard):
    @declare()
    async def noop():
        """Nothing."""

    noop.enqueue()
    run_until_empty()
    assert heard.names == ["job_enqueued", "job_started", "job_succeeded"]


def test_on_an_event_loop_started_is_awaited():
    heard = []

    async def receive(sender, **kwargs):
        heard.append((sender, kwargs["job_id"], kwargs["tenant"]))

    async def fetch():
        """Nothing."""

    signals.job_started.connect(receive)
    ctx = make_loose_context(make_claim(number=8))
    job_type = JobType("tests.fetch", fetch)
    asyncio.run(atell_started(job_type, lambda: ctx))
    assert heard == [(job_type, 8, "acme")]


def test_enqueued_is_part_of_the_callers_transaction(declare, broker_database, heard):
    @declare()
    def noop():
        """Nothing."""

    with transaction.atomic():
        handle = noop.enqueue()
        assert heard.of("job_enqueued")[0]["state"] is JobState.PENDING
        transaction.set_rollback(True)
    assert state_of(handle.id) is None


def test_a_receiver_for_one_job_type_hears_of_no_other(declare, run_until_empty):
    heard = []

    @declare()
    def one():
        """Nothing."""

    @declare()
    def other():
        """Nothing."""

    def receive(job_id, **kwargs):
        heard.append(job_id)

    signals.job_succeeded.connect(receive, sender=one)
    wanted = one.enqueue()
    other.enqueue()
    run_until_empty()
    assert heard == [wanted.id]


def test_receivers_that_raise_or_leave_a_transaction_open_harm_nobody(declare, run_until_empty, heard, caplog):
    @declare()
    def noop():
        """Nothing."""

    def bad(signal, **kwargs):
        if signal is signals.job_succeeded:
            with connection.cursor() as cursor:
                cursor.execute("begin")
                cursor.execute("select 1")
        raise ValueError("a bad receiver")

    connected = [signals.job_enqueued, signals.job_started, signals.job_succeeded]
    for signal in connected:
        signal.connect(bad)
    try:
        handles = [noop.enqueue() for _ in range(3)]
        run_until_empty()
    finally:
        for signal in connected:
            signal.disconnect(bad)

    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    assert Counter(heard.names)["job_succeeded"] == 3
    assert caplog.text.count("Error calling") == 9


def test_a_slow_receiver_does_not_hold_up_the_jobs(declare, run_until_empty, start):
    release = threading.Event()
    heard = []

    @declare()
    def noop():
        """Nothing."""

    def slow(job_id, **kwargs):
        assert release.wait(20)
        heard.append(job_id)

    signals.job_succeeded.connect(slow)
    handles = [noop.enqueue() for _ in range(50)]
    worker = start()
    wait_until(lambda: all(handle.status() is JobState.COMPLETED for handle in handles), "all are done")
    assert not heard
    release.set()
    worker.drain()
    assert sorted(heard) == [handle.id for handle in handles]


def test_what_finds_the_queue_full_is_dropped_and_told_once(caplog):
    release, heard = threading.Event(), []

    def slow(number, **kwargs):
        assert release.wait(20)
        heard.append(number)

    signals.job_dead.connect(slow)
    sender = SignalSender(most_waiting=3)
    sender.put([Sending(signals.job_dead, None, {"number": 0})])
    wait_until(lambda: not sender._waiting, "the first one is being sent")
    for number in range(1, 9):
        sender.put([Sending(signals.job_dead, None, {"number": number})])
    assert not sender.flush(0.01)
    release.set()
    assert sender.flush(10)
    assert heard == [0, 1, 2, 3]
    assert caplog.text.count("signals.dropped") == 1


def test_a_lapsed_lease(broker_database, gateway, rows, declare, heard):
    @declare(max_attempts=1)
    def noop():
        """Nothing."""

    handle = noop.enqueue()
    rows.run(
        "update pgbroker.job set state = 1, attempt = 1, lease_token = 5, leased_at = now() - interval '1 h',"
        " started_at = now() - interval '1 h', lease_expires_at = now() - interval '1 h', worker_id = 77"
        " where id = %s",
        handle.id,
    )
    swept = Reclaimer().tick(gateway, 10)
    assert heard.names == ["job_enqueued"]
    for report in swept.reports:
        report()
    assert flush_signals(10)

    assert heard.names == ["job_enqueued", "job_lost", "job_dead"]
    lost, dead = heard.of("job_lost")[0], heard.of("job_dead")[0]
    assert (lost["sender"], lost["job_id"], lost["worker_id"]) == (noop, handle.id, 77)
    assert (lost["next_state"], dead["state"], dead["outcome"]) == (JobState.DEAD, JobState.DEAD, Outcome.LOST)
