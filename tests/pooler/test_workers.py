"""Workers that reach the database through PgBouncer in transaction mode alone (B055)."""

import json
import signal
from collections import Counter

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution
from tests.maintenance.waiting import wait_until
from tests.pooler.traces import CLEAN, count_session_locks, read_traces
from tests.scenarios import jobs
from tests.scenarios.processes import ManageProcess

FAULTS = ("Traceback", "already exists", "does not exist", "lease.lost", "worker.database_lost", "maintenance.failed")

#: What careless clients leave on the server connections of a pool.
SPOILED = (
    "default_transaction_isolation = serializable",
    "enable_seqscan = on",
    "search_path = nowhere, public",
    "timezone = 'Asia/Tokyo'",
    "lock_timeout = '1ms'",
    "statement_timeout = '300ms'",
)


def is_done(handles):
    finished = ArchivedJob.objects.filter(pk__in=[each.id for each in handles], state=JobState.COMPLETED)
    return finished.count() == len(handles)


def outcomes(handle):
    found = Execution.objects.filter(job_id=handle.id).order_by("lease_token")
    return [Outcome(execution.outcome) for execution in found]


def wait_until_each_says(workers, text, times):
    wait_until(lambda: all(worker.output.count(text) >= times for worker in workers), f"each says {text}", seconds=30)


def assert_none_says(workers, *faults):
    for worker in workers:
        for fault in faults:
            assert not worker.says(fault), worker.output


def test_b055_200_jobs_run_once_and_leave_no_trace(bouncer, start, story, rows):
    workers = [start(bouncer, "--concurrency", "4", wait=False) for _ in range(4)]
    for worker in workers:
        worker.wait_until_ready()
    handles = [story.enqueue(jobs.quick) for _ in range(200)]
    wait_until(lambda: is_done(handles), "all have run", seconds=60)

    assert story.count("done") == 200
    assert set(Counter(Execution.objects.values_list("job_id", flat=True)).values()) == {1}
    assert set(Execution.objects.values_list("outcome", "attempt")) == {(Outcome.COMPLETED, 1)}
    traces = read_traces(bouncer)
    assert len(traces) == bouncer.pool_size
    began_before = "select count(*) from pg_stat_activity where pid = any (%s) and backend_start < %s"
    last = ArchivedJob.objects.order_by("finished_at").last()
    assert rows.one(began_before, list(traces), last.finished_at), "some of them have served the workers"
    assert list(traces.values()) == [CLEAN] * len(traces)
    assert count_session_locks(rows.gateway.connection) == 0
    assert_none_says(workers, *FAULTS)
    for worker in workers:
        worker.send(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0] * 4


def test_b055_a_worker_that_listens_directly_hears_of_a_job_although_polls_are_half_a_minute_apart(
    bouncer, start, story, rows
):
    rarely = {"POLL_MIN_SECONDS": 30, "POLL_MAX_SECONDS": 30}
    worker = start(bouncer, "--concurrency", "1", LISTEN_DATABASE="direct", **rarely)
    listener = "select 1 from pg_stat_activity where application_name like 'pgbroker listener%%'"
    wait_until(lambda: rows.one(listener), "it listens")
    for _ in range(3):
        handle = story.enqueue(jobs.quick)
        wait_until(lambda handle=handle: handle.status() is JobState.COMPLETED, "it hears of the job", seconds=10)
    assert_none_says([worker], *FAULTS, "listener.none")


def test_b055_a_worker_that_cannot_listen_says_so_once_and_finds_jobs_by_polling(bouncer, start, story, rows):
    worker = start(bouncer, "--concurrency", "1")
    for _ in range(3):
        handle = story.enqueue(jobs.quick)
        wait_until(lambda handle=handle: handle.status() is JobState.COMPLETED, "it polls")
    assert worker.output.count("listener.none") == 1
    assert rows.one("select count(*) from pg_stat_activity where query ilike 'listen%%'") == 0
    assert_none_says([worker], *FAULTS)


def test_a_drain_lets_what_runs_finish_and_hands_back_what_has_not_begun(bouncer, start, story):
    worker = start(bouncer, "--concurrency", "1")
    first = story.enqueue(jobs.gated, gate="open")
    wait_until(lambda: story.count("begun"), "it runs")
    others = [story.enqueue(jobs.quick) for _ in range(5)]
    worker.send(signal.SIGTERM)
    wait_until(lambda: worker.says("worker.draining"), "it drains")
    story.open("open")
    assert worker.wait() == 0
    assert first.status() is JobState.COMPLETED
    assert {each.status() for each in others} == {JobState.PENDING}


def test_a_second_signal_hands_everything_back_at_once(bouncer, start, story):
    worker = start(bouncer, "--concurrency", "1")
    handle = story.enqueue(jobs.stubborn)
    wait_until(lambda: story.count("begun"), "it runs")
    worker.send(signal.SIGTERM)
    wait_until(lambda: worker.says("worker.draining"), "it drains")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 1
    assert handle.status() is JobState.PENDING
    assert outcomes(handle) == [Outcome.INTERRUPTED]


def test_the_job_of_a_killed_worker_completes_elsewhere(bouncer, start, story):
    for worker in [start(bouncer, "--concurrency", "1", wait=False) for _ in range(2)]:
        worker.wait_until_ready()
    handle = story.enqueue(jobs.kill_the_first_time)
    wait_until(lambda: handle.status() is JobState.COMPLETED, "the other one completes it", seconds=30)
    assert outcomes(handle) == [Outcome.LOST, Outcome.COMPLETED]


def test_a_pooler_that_is_killed_and_comes_back_under_load_loses_nothing(bouncer, start, story):
    workers = [start(bouncer, "--concurrency", "4", wait=False, LEASE_SECONDS=10) for _ in range(2)]
    for worker in workers:
        worker.wait_until_ready()
    handles = []
    for times in (1, 2):
        done = story.count("done")
        handles += [story.enqueue(jobs.sleepy, seconds=0.1) for _ in range(100)]
        wait_until(lambda done=done: story.count("done") > done + 5, "they are at work")
        bouncer.kill()
        wait_until_each_says(workers, "worker.database_lost", times)
        bouncer.start()
        wait_until_each_says(workers, "worker.database_back", times)
    wait_until(lambda: all(each.status() >= JobState.COMPLETED for each in handles), "all have ended", seconds=60)
    completed = Execution.objects.filter(outcome=Outcome.COMPLETED).values_list("job_id", flat=True)
    assert max(Counter(completed).values()) == 1
    assert all(worker.lives for worker in workers)


def test_server_connections_that_are_killed_behind_the_pooler_lose_nothing(bouncer, start, story, rows):
    worker = start(bouncer, "--concurrency", "4", LEASE_SECONDS=10)
    handles = [story.enqueue(jobs.sleepy, seconds=0.02) for _ in range(150)]
    own = [rows.one("select pg_backend_pid()")]
    for target in (10, 40, 70):
        wait_until(lambda target=target: story.count("done") > target, "it is at work", seconds=60)
        for pid in read_traces(bouncer).keys() - own:
            rows.run("select pg_terminate_backend(%s::int, 5000)", pid)
    wait_until(lambda: all(each.status() >= JobState.COMPLETED for each in handles), "all have ended", seconds=60)
    completed = Execution.objects.filter(outcome=Outcome.COMPLETED).values_list("job_id", flat=True)
    assert max(Counter(completed).values()) == 1
    assert worker.lives


def test_three_workers_with_one_server_connection_between_them_wait_for_each_other_and_go_on(bounce, start, story):
    bouncer = bounce(1)
    workers = [start(bouncer, "--concurrency", "4", wait=False) for _ in range(3)]
    for worker in workers:
        worker.wait_until_ready()
    handles = [story.enqueue(jobs.quick) for _ in range(100)]
    wait_until(lambda: is_done(handles), "all have run", seconds=60)
    assert story.count("done") == 100
    assert list(read_traces(bouncer).values()) == [CLEAN]
    assert_none_says(workers, *FAULTS)


def test_another_client_that_spoils_the_server_connections_disturbs_nothing(bounce, start, story):
    bouncer = bounce(1)
    worker = start(bouncer, "--concurrency", "2")
    with bouncer.connect() as other:
        for round_number in range(5):
            other.execute("; ".join(f"set {setting}" for setting in SPOILED))
            handles = [story.enqueue(jobs.quick) for _ in range(10)]
            wait_until(lambda handles=handles: is_done(handles), f"round {round_number} has run", seconds=30)
    assert set(Execution.objects.values_list("outcome", "attempt")) == {(Outcome.COMPLETED, 1)}
    assert_none_says([worker], *FAULTS)


def test_a_fresh_database_is_migrated_through_it_and_the_doctor_sees_all_of_it(bouncer, rows):
    rows.run("drop database if exists pgbroker_pooled")
    rows.run("create database pgbroker_pooled")
    database = {**bouncer.database, "NAME": "pgbroker_pooled"}
    more = {"DJANGO_SETTINGS_MODULE": "tests.pooler.settings", "POOLER_DIRECT": json.dumps(bouncer.direct)}
    try:
        for arguments in [("migrate", "--verbosity", "0"), ("pgbroker_worker", "--until-empty"), ("pgbroker_doctor",)]:
            process = ManageProcess(arguments, {"TRANSACTION_POOLER": True}, database, more)
            assert process.wait(60) == 0 or arguments == ("pgbroker_doctor",), process.output
        assert "partitions" in process.output
        assert not process.says("Could not be seen"), process.output
    finally:
        bouncer.kill()
        rows.run("drop database pgbroker_pooled with (force)")
