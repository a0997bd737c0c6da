"""What a worker does before its first turn, and that it minds nobody else's connection (B057)."""

from django.db import connection, transaction

from django_pgbroker.domain.states import JobState
from django_pgbroker.models import JobType, Queue
from django_pgbroker.worker.options import WorkerOptions, parse_queues
from django_pgbroker.worker.session import open_session
from django_pgbroker.worker.worker import Worker
from tests.factories import TenantFactory


def options(queues="default"):
    return WorkerOptions(parse_queues(queues), 2, until_empty=True)


def test_the_rows_of_its_queues_and_job_types_are_there_before_it_registers(declare, broker_database):
    declare("tests.never_enqueued")(lambda: 1)
    session = open_session(options("mail:3,default"))
    try:
        assert set(Queue.objects.values_list("name", flat=True)) >= {"mail", "default"}
        known = JobType.objects.get(name="tests.never_enqueued")
        assert session.directory.job_types[known.id].name == "tests.never_enqueued"
        assert [(lane.name, lane.weight) for lane in session.lanes] == [("mail", 3), ("default", 1)]
    finally:
        session.end("test")


def test_a_worker_that_runs_within_a_transaction_of_its_caller_leaves_that_one_alone(declare, broker_database):
    noop = declare("tests.noop")(lambda: 1)
    handle = noop.enqueue()
    with transaction.atomic():
        TenantFactory(name="written before")
        backend = connection.connection.info.backend_pid
        assert Worker(options()).run() == 0
        assert connection.connection.info.backend_pid == backend
        TenantFactory(name="written after")
    assert handle.status() is JobState.COMPLETED
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from pgbroker.tenant where name like 'written %%'")
        assert cursor.fetchone()[0] == 2
