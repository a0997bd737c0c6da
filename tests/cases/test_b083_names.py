"""B083: names that mean something to SQL, to a channel or to a shell work exactly as they are, or are refused."""

import pytest
from django.core.management import CommandError, call_command

from django_pgbroker import InvalidName, UnknownJobType, enqueue, pause_queue, resume_queue
from django_pgbroker.domain.errors import ConfigurationError, PgbrokerError
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, Job, Queue, Tenant
from django_pgbroker.worker.options import QueueShare, WorkerOptions
from django_pgbroker.worker.worker import Worker
from tests.admin.screens import list_url
from tests.maintenance.waiting import wait_until

HOSTILE = ["a'b", 'a"b', "x; DROP TABLE y--", "%s", "%(x)s", "two words", "🚀", "\\", "$$", "a',b", "--help"]
TOO_LONG = "a" * 201

TABLES = "select array_agg(oid::regclass::text order by 1) from pg_class where relkind in ('r', 'p')"


@pytest.fixture
def unchanged_tables(rows):
    """No table comes or goes."""
    before = rows.one(TABLES)
    yield
    assert rows.one(TABLES) == before


@pytest.mark.parametrize("name", [*HOSTILE, TOO_LONG, "", "a\x00b", "a\nb"])
def test_b083_a_queue_or_job_type_of_such_a_name_is_refused_everywhere(declare, rows, unchanged_tables, name):
    noop = declare("tests.noop")(lambda: 1)
    with pytest.raises(InvalidName):
        noop.using(queue=name).enqueue()
    with pytest.raises((InvalidName, UnknownJobType)):
        enqueue(name)
    with pytest.raises(ConfigurationError):
        declare(name or " ")(lambda: 1)
    for change in (pause_queue, resume_queue):
        with pytest.raises(InvalidName):
            change(name, actor="test")
    with pytest.raises(CommandError):
        call_command("pgbroker_worker", f"--queues={name}", "--until-empty")
    with pytest.raises((CommandError, PgbrokerError)):
        call_command("pgbroker_status", f"--database={name or 'x y'}")
    assert (Job.objects.count(), ArchivedJob.objects.count()) == (0, 0)


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "a\x00b"])
def test_b083_a_tenant_of_such_a_name_reaches_its_handler_and_no_other(
    declare, run_until_empty, unchanged_tables, name
):
    who = declare("tests.who")(lambda ctx: ctx.tenant)
    hostile, ordinary = who.using(tenant=name, created_by=name, correlation_id=name).enqueue(), who.enqueue()
    assert run_until_empty() == 0
    assert (hostile.result(), ordinary.result()) == (name, "default")
    assert set(Tenant.objects.values_list("name", flat=True)) == {name, "default"}
    assert ArchivedJob.objects.get(pk=hostile.id).created_by == name


@pytest.mark.parametrize("name", HOSTILE)
def test_b083_a_queue_that_somebody_named_so_by_hand_is_served_paused_and_announced_like_any_other(
    declare, rows, operator, unchanged_tables, name
):
    """No name is ever text of SQL, whatever the checks at the door say."""
    noop = declare("tests.noop")(lambda: 1)
    first = noop.enqueue()
    queue_id = rows.queue(name)
    rows.run("update pgbroker.job set queue_id = %s", queue_id)
    page = operator.get(list_url("job"), {"queue": queue_id})
    assert [row.pk for row in page.context["cl"].result_list] == [first.id]

    worker = Worker(WorkerOptions((QueueShare(name),), 1, until_empty=True, name=name))
    assert worker.run() == 0

    assert first.status() is JobState.COMPLETED
    assert set(Queue.objects.values_list("name", flat=True)) == {name, "default"}
    assert rows.one("select name from pgbroker.worker") == name


def test_b083_a_notification_for_a_queue_of_another_name_wakes_nobody_and_harms_nobody(declare, start, rows):
    noop = declare("tests.noop")(lambda: 1)
    worker = start(concurrency=1)
    for name in [*HOSTILE, "", "x" * 7_000]:
        rows.run("select pg_notify('pgbroker_wake', %s)", name)
    handle = noop.enqueue()
    wait_until(lambda: handle.status() is JobState.COMPLETED, "it works on")
    assert worker.lives
