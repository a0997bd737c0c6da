"""B064: a connection whose other end is gone without a word is given up, and replaced by a new one."""

import time
from queue import SimpleQueue

import psycopg
import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import Execution
from django_pgbroker.runtime import listener
from django_pgbroker.runtime.connections import open_connection
from django_pgbroker.runtime.listener import Listener
from tests.cases.processes import start_through
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs


def test_b064_a_listener_that_hears_nothing_any_more_is_found_out_and_listens_anew(
    proxy, proxied_alias, rows, monkeypatch
):
    monkeypatch.setattr(listener, "_PROBE_SECONDS", 0.2)
    monkeypatch.setattr(listener, "_PROBE_TIMEOUT", "500ms")
    heard = SimpleQueue()
    ears = Listener(proxied_alias, "ears", heard.put)
    ears.start()
    try:
        assert heard.get(timeout=10) is None
        [held] = proxy.hold_answers("listener ears")
        rows.run("select pg_notify('pgbroker_wake', 'unheard')")
        assert heard.get(timeout=10) is None, "a new connection asks for a look at everything"
        assert not held.passes.is_set()
        rows.run("select pg_notify('pgbroker_wake', 'heard')")
        assert heard.get(timeout=10) == "heard"
    finally:
        ears.stop()
        ears.join(10)
    assert not ears.is_alive()


def test_b064_no_statement_of_the_broker_waits_for_a_silent_server_for_ever(proxy, proxied_alias):
    """The whole kind: turns, heartbeats, duties and announcements use the same connections."""
    with open_connection(proxied_alias, "silent", statement_timeout="300ms") as connection:
        proxy.hold_answers("silent")
        began = time.monotonic()
        with pytest.raises(psycopg.OperationalError, match="said nothing for"):
            connection.execute("select 1")
        assert 0.6 <= time.monotonic() - began < 5
        assert connection.closed


def test_b064_a_slow_answer_is_no_silence(proxied_alias):
    with open_connection(proxied_alias, "slow", statement_timeout="2s") as connection:
        [[found]] = connection.execute("select 1 from pg_sleep(1)").fetchall()
    assert found == 1


def test_b064_b062_a_worker_whose_heartbeat_falls_silent_keeps_its_leases_on_a_new_connection(story, proxy):
    """The statement time-out of the heartbeat is a second here, so that its leases are kept in good time."""
    with start_through(proxy, HEARTBEAT_SECONDS=1, LEASE_SECONDS=10) as worker:
        handle = story.enqueue(jobs.gated, gate="open")
        wait_until(lambda: story.count("begun"), "it runs")
        assert proxy.hold_answers("heartbeat")
        wait_until(lambda: worker.says("lease.renewal_failed"), "the silence is noticed")
        wait_until(lambda: worker.says("lease.renewal_resumed"), "the leases are kept again")
        story.open("open")
        wait_until(lambda: handle.status() is JobState.COMPLETED, "it is done")
    assert Execution.objects.get().attempt == 1


@pytest.mark.drill
def test_b064_with_the_time_outs_as_they_are_one_job_waits_for_the_detection_and_no_other(story, proxy):
    """Thirty seconds for a listener (10 until the probe, 10 for its answer, and a busy machine), forty for turns."""
    with start_through(proxy, POLL_MAX_SECONDS=60, POLL_MIN_SECONDS=60) as worker:
        for role, seconds in (("listener", 30), ("worker", 45)):
            assert proxy.hold_answers(role)
            first = story.enqueue(jobs.quick)
            wait_until(lambda first=first: first.status() is JobState.COMPLETED, f"{role} is found out", seconds)
            for _ in range(3):
                handle = story.enqueue(jobs.quick)
                wait_until(lambda handle=handle: handle.status() is JobState.COMPLETED, "it hears again", 2)
        assert worker.lives
        assert len(worker.lines) < 30, worker.output
