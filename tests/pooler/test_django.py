"""What uses Django's connection or the announcer's, with everything of this process behind PgBouncer."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, connections, transaction

from django_pgbroker.domain.errors import JobNotFound
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import Execution
from django_pgbroker.operations.doctor.examination import examine
from django_pgbroker.operations.doctor.finding import Level
from django_pgbroker.runtime.announcer import announce, flush_announcements
from django_pgbroker.runtime.connections import open_connection
from tests.admin.screens import MODELS, address_of, list_url, make_row
from tests.migrations.conftest import as_alias
from tests.pooler.conftest import POOLED, moved_behind
from tests.pooler.traces import CLEAN, read_traces
from tests.worker.handlers import gate
from tests.worker.workers import run_until_empty, start

__all__ = ["gate", "run_until_empty", "start"]


def test_a_job_commits_with_its_caller_and_new_names_are_made_meanwhile(behind, declare):
    noop = declare("tests.noop")(lambda: 1)
    with transaction.atomic():
        undone = noop.using(queue="new", tenant="first").enqueue()
        transaction.set_rollback(True)
    with transaction.atomic():
        done = noop.using(queue="newer", tenant="second").enqueue()
    with pytest.raises(JobNotFound):
        undone.status()
    assert done.status() is JobState.PENDING
    assert all(traces == CLEAN for traces in read_traces(behind).values())


def test_a_queue_is_announced_through_it_and_heard_on_a_direct_connection(behind):
    with as_alias(behind.direct) as direct, open_connection(direct, "ear") as ear:
        ear.execute("listen pgbroker_wake")
        announce("default", "mail")
        assert flush_announcements(10)
        assert [notice.payload for notice in ear.notifies(timeout=10, stop_after=1)] == ["mail"]
    assert all(traces == CLEAN for traces in read_traces(behind).values())


def test_a_worker_retries_a_failure_and_keeps_the_errors(behind, declare, run_until_empty, settings):
    settings.PGBROKER = {**settings.PGBROKER, **POOLED}
    attempts = []

    @declare(max_attempts=3)
    def fails_twice():
        attempts.append(1)
        if len(attempts) < 3:
            raise ValueError("not yet")
        return "fine"

    handle = fails_twice.enqueue()
    assert run_until_empty() == 0
    assert handle.status() is JobState.COMPLETED
    assert handle.result() == "fine"
    found = Execution.objects.order_by("lease_token").values_list("outcome", "attempt")
    assert list(found) == [(Outcome.FAILED, 1), (Outcome.FAILED, 2), (Outcome.COMPLETED, 3)]


def test_duties_hold_no_lock_for_longer_than_their_transaction(behind, declare, rows):
    call_command("pgbroker_reaper", "--once", stdout=StringIO())
    call_command("pgbroker_scheduler", "--once", stdout=StringIO())
    assert rows.one("select count(*) from pg_locks where locktype = 'advisory'") == 0
    assert all(traces == CLEAN for traces in read_traces(behind).values())


def test_the_doctor_sees_as_much_as_on_a_direct_connection(bouncer, declare, settings):
    declare("tests.noop")(lambda: 1).enqueue()
    directly = examine().findings
    settings.PGBROKER = POOLED
    with moved_behind(bouncer):
        through = examine().findings
    unseen = {topic for topic, finding in directly.items() if finding.level is Level.UNSEEN}
    assert {topic for topic, finding in through.items() if finding.level is Level.UNSEEN} == unseen
    assert through["claim_plan"].level is directly["claim_plan"].level is Level.OK
    assert all(traces == CLEAN for traces in read_traces(bouncer).values())


@pytest.mark.parametrize("model", MODELS)
def test_the_admin_shows_its_pages(behind, operator, model):
    row = make_row(model)
    for address in (list_url(model), address_of(model, row)):
        assert operator.get(address).status_code == 200


def test_an_own_connection_of_django_is_where_it_should_be(behind):
    """The other tests here are worth nothing unless this holds."""
    connection.ensure_connection()
    assert connections["default"].connection.info.port == behind.port
