"""``pgbroker_run JOB_ID``: in this thread, claimed and recorded like in any worker."""

import os
import signal
import threading

import pytest
from django.core.management import CommandError, call_command

from django_pgbroker import pause_queue
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import Execution, Job, Worker
from tests.maintenance.waiting import wait_until
from tests.worker.handlers import declare

__all__ = ["declare"]


@pytest.fixture
def run(capsys):
    """Runs the command and returns its exit status and all that it printed."""

    def run(job_id, *arguments):
        status = 0
        try:
            call_command("pgbroker_run", str(job_id), *arguments)
        except SystemExit as error:
            status = error.code
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run


def refuse(job_id, *arguments):
    """The message with which a job is not claimed."""
    with pytest.raises(CommandError) as caught:
        call_command("pgbroker_run", str(job_id), *arguments)
    assert caught.value.returncode == 2
    return str(caught.value)


@pytest.fixture
def greet(broker_database, declare):
    @declare()
    def greet(ctx, name: str) -> dict:
        return {"text": f"hello {name}", "is_main": threading.current_thread() is threading.main_thread()}

    return greet


def test_a_job_is_run_in_the_main_thread_and_completed(greet, run):
    other, handle = greet.enqueue("nobody"), greet.enqueue("you")

    status, said = run(handle.id)

    assert status == 0
    assert handle.result() == {"text": "hello you", "is_main": True}
    assert f"Job {handle.id}: completed after 0.0" in said
    assert '"hello you"' in said
    assert "It is completed now." in said
    assert other.status() is JobState.PENDING
    worker = Worker.objects.get()
    assert worker.stop_reason == "stopped"
    assert Execution.objects.get().worker_id == worker.pk


def test_a_failure_shows_its_traceback_and_what_comes_next(declare, broker_database, run):
    @declare(max_attempts=2)
    def fail():
        raise ValueError("wrong")

    handle = fail.enqueue()
    status, said = run(handle.id)
    assert status == 1
    assert "ValueError: wrong" in said
    assert "in fail" in said
    assert "It is pending now." in said
    assert Job.objects.get(pk=handle.id).attempt == 1

    status, said = run(handle.id)
    assert status == 1
    assert "It is dead now." in said
    assert "attempts spent" in said


def test_a_scheduled_job_says_when_it_is_due_and_runs_when_it_is_told_to(greet, run):
    handle = greet.using(delay=3600).enqueue("you")
    assert refuse(handle.id).startswith(f"job {handle.id} is due at 20")
    assert handle.status() is JobState.SCHEDULED
    assert run(handle.id, "--now")[0] == 0
    assert handle.status() is JobState.COMPLETED


def test_what_cannot_be_claimed_says_why_and_leaves_no_worker_behind(greet, rows):
    done, running, expired, unknown = (greet.enqueue(str(number)) for number in range(4))
    call_command("pgbroker_run", str(done.id))
    rows.run(
        "update pgbroker.job set state = 1, worker_id = (select min(id) from pgbroker.worker), leased_at = now(),"
        " lease_token = 1, lease_expires_at = now() + interval '1 h' where id = %s",
        running.id,
    )
    rows.run("update pgbroker.job set expires_at = now() where id = %s", expired.id)
    rows.run("update pgbroker.job set job_type_id = %s where id = %s", rows.job_type("elsewhere.job"), unknown.id)

    assert refuse(done.id).startswith(f"job {done.id} has finished as completed, at 20")
    assert f"runs elsewhere: on worker {Worker.objects.get().name} since 20" in refuse(running.id)
    assert "has expired before it began" in refuse(expired.id)
    assert "of the type 'elsewhere.job', and this code has no handler" in refuse(unknown.id)
    assert "there is no job 987654321" in refuse(987_654_321)
    assert Worker.objects.count() == 1


def test_a_paused_queue_is_no_obstacle_and_said(greet, run):
    handle = greet.enqueue("you")
    pause_queue("default", actor="test")
    status, said = run(handle.id)
    assert status == 0
    assert "'default' is paused; that is no obstacle here" in said


def test_an_async_handler_runs_too(declare, broker_database, run):
    @declare()
    async def fetch() -> int:
        return 7

    handle = fetch.enqueue()
    assert run(handle.id)[0] == 0
    assert handle.result() == 7


def test_the_first_signal_asks_and_the_second_hands_the_job_back_without_an_attempt(declare, broker_database, run):
    heard, before = [], signal.getsignal(signal.SIGINT)

    @declare()
    def stubborn(ctx):
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(ctx.should_stop, "it is asked")
        heard.append("asked")
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: False, "the end", seconds=20)

    handle = stubborn.enqueue()
    status, said = run(handle.id)

    assert heard == ["asked"]
    assert status == 1
    assert "Asked the handler to stop" in said
    assert "interrupted after" in said
    assert Execution.objects.get().outcome == Outcome.INTERRUPTED
    stored = Job.objects.get(pk=handle.id)
    assert (stored.state, stored.attempt) == (JobState.PENDING, 0)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_lease_is_kept_and_the_time_out_is_not_minded(declare, broker_database, run, settings, rows):
    settings.PGBROKER = {"LEASE_SECONDS": 2, "HEARTBEAT_SECONDS": 0.5}

    @declare(timeout=1, heartbeat_timeout=1)
    def slow(ctx):
        first = rows.one("select lease_expires_at from pgbroker.job where id = %s", ctx.id)
        ends = "select lease_expires_at > %s + interval '1.2 s' from pgbroker.job where id = %s"
        wait_until(lambda: rows.one(ends, first, ctx.id), "the lease is renewed again and again")
        return ctx.should_stop()

    handle = slow.enqueue()
    assert run(handle.id)[0] == 0
    assert handle.result() is False


def test_a_lost_claim_is_told_and_changes_nothing(declare, broker_database, run, rows):
    @declare()
    def lose(ctx):
        rows.run("update pgbroker.job set lease_token = lease_token + 1000 where id = %s", ctx.id)

    handle = lose.enqueue()
    status, said = run(handle.id)
    assert status == 1
    assert "That was not recorded: the claim was lost" in said
    assert handle.status() is JobState.RUNNING


def test_a_lost_connection_does_not_lose_the_verdict(declare, broker_database, run, rows):
    @declare()
    def cut():
        rows.run(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name like 'pgbroker worker%%' and datname = current_database()"
        )

    handle = cut.enqueue()
    status, said = run(handle.id)
    assert "The database does not answer, trying again" in said
    assert status == 0
    assert handle.status() is JobState.COMPLETED


@pytest.mark.parametrize("number", ["0", str(2**63)])
def test_a_number_that_no_job_has_is_refused(number, broker_database):
    with pytest.raises(CommandError, match="there is no job") as refused:
        call_command("pgbroker_run", number)
    assert refused.value.returncode == 2
