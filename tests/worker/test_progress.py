"""How the progress of running jobs gets to the database: the newest, seldom, fenced, the last with the verdict."""

import logging
import time

import pytest

from django_pgbroker.domain.progress import Progress, ProgressReport
from django_pgbroker.domain.records import AckReport
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.stops import JobStopped, Stop, StopKind
from django_pgbroker.domain.verdicts import judge_result
from django_pgbroker.models import ArchivedJob, Execution, JobProgress
from django_pgbroker.worker.context import JobContext
from django_pgbroker.worker.progress_board import INTERVAL_SECONDS, ProgressBoard
from django_pgbroker.worker.steps import JobMemory
from tests.maintenance.waiting import wait_until
from tests.worker.claims import make_claim
from tests.worker.links import LooseLink

#: Writes down when the progress of a job is written.
COUNTER = [
    "create table progress_write (at timestamptz not null default clock_timestamp())",
    "create function note_progress_write() returns trigger language plpgsql"
    " as $$ begin insert into progress_write default values; return null; end $$",
    "create trigger note after insert on pgbroker.job_progress execute function note_progress_write()",
]
NO_COUNTER = [
    "drop trigger note on pgbroker.job_progress",
    "drop function note_progress_write",
    "drop table progress_write",
]


@pytest.fixture
def count_writes(rows):
    """Answers how many statements have written progress."""
    for statement in COUNTER:
        rows.run(statement)
    yield lambda: rows.one("select count(*) from progress_write")
    for statement in NO_COUNTER:
        rows.run(statement)


def told(job_id):
    """The stored progress of a live job."""
    found = JobProgress.objects.filter(pk=job_id).first()
    return found and found.told


def archived(job_id):
    return ArchivedJob.objects.get(pk=job_id).progress


# ------------------------------------------------------------------------------------------------ in a worker


def test_progress_is_seen_while_the_handler_runs_and_a_completed_job_is_at_its_total(declare, start, gate):
    @declare()
    def load(ctx):
        ctx.progress(3, 10, "read")
        gate.wait()

    handle = load.enqueue()
    worker = start()
    wait_until(lambda: told(handle.id) == Progress(3, 10, "read"), "the progress is stored")
    gate.open()
    worker.drain()
    assert archived(handle.id) == {"done": 10, "total": 10, "stage": "read"}
    assert not JobProgress.objects.exists()


def test_the_last_progress_of_a_job_that_has_just_ended_is_kept(declare, run_until_empty):
    @declare()
    def count(ctx, to):
        for number in range(to + 1):
            ctx.progress(number)

    handles = {to: count.enqueue(to=to) for to in (1, 20, 300)}
    run_until_empty()
    for to, handle in handles.items():
        assert archived(handle.id)["done"] == to


def test_however_often_it_is_told_progress_is_written_once_a_second(declare, run_until_empty, count_writes):
    seconds = 2.5

    @declare()
    def chatter(ctx):
        calls, until = 0, time.monotonic() + seconds
        while time.monotonic() < until:
            calls += 1
            ctx.progress(calls)
        return calls

    handles = [chatter.enqueue() for _ in range(2)]
    run_until_empty()
    assert sum(handle.result() for handle in handles) > 1000
    # both jobs in one statement a second, and once more with the verdict of each
    assert 2 <= count_writes() <= seconds / INTERVAL_SECONDS + 1 + len(handles)
    assert [archived(handle.id)["done"] for handle in handles] == [handle.result() for handle in handles]


def test_a_job_that_tells_no_progress_costs_no_statement(declare, run_until_empty, count_writes):
    @declare()
    def plain():
        return None

    for _ in range(20):
        plain.enqueue()
    run_until_empty()
    assert count_writes() == 0
    assert ArchivedJob.objects.filter(state=JobState.COMPLETED, progress__isnull=True).count() == 20


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, True, "5", 10**400])
def test_an_impossible_amount_fails_the_job_with_a_clear_error_and_the_worker_goes_on(declare, run_until_empty, value):
    @declare(max_attempts=1)
    def load(ctx):
        ctx.progress(value, 10)

    @declare()
    def fine(ctx):
        ctx.progress(1, 2)

    failed, after = load.enqueue(), fine.enqueue()
    run_until_empty()
    assert (failed.status(), after.status()) == (JobState.DEAD, JobState.COMPLETED)
    dead = ArchivedJob.objects.get(pk=failed.id)
    assert dead.error_class.endswith("InvalidOption")
    assert "progress(done=" in dead.error_message


def test_a_stage_that_cannot_be_stored_is_shown_as_escapes(declare, run_until_empty):
    @declare()
    def load(ctx):
        ctx.progress(1, 2, "NUL \x00, half \ud800" + "x" * 500)

    handle = load.enqueue()
    run_until_empty()
    assert handle.status() is JobState.COMPLETED
    stage = archived(handle.id)["stage"]
    assert stage.startswith(r"NUL \x00, half \ud800xxx")
    assert len(stage) <= 200


def test_telling_progress_ends_a_handler_that_has_timed_out(declare, run_until_empty):
    @declare(timeout=1, max_attempts=1)
    def endless(ctx):
        while True:
            ctx.progress(1)

    handle = endless.enqueue()
    run_until_empty()
    assert handle.status() is JobState.DEAD
    assert Execution.objects.get(job_id=handle.id).outcome == Outcome.TIMED_OUT


def test_progress_of_a_lost_claim_changes_nothing_and_is_told_once(declare, start, gate, rows, caplog):
    caplog.set_level(logging.INFO)

    @declare()
    def load(ctx):
        ctx.progress(1, 10)
        gate.wait()
        for number in range(2_000_000_000):
            ctx.progress(2 + number % 7, 10)
            if ctx.should_stop():
                return

    handle = load.enqueue()
    worker = start()
    wait_until(lambda: told(handle.id) == Progress(1, 10), "the first is stored")
    rows.run("update pgbroker.job set lease_token = nextval('pgbroker.lease_token_seq') where id = %s", handle.id)
    gate.open()
    wait_until(lambda: "progress.refused" in caplog.text, "the later ones are refused")
    worker.drain()
    assert told(handle.id) == Progress(1, 10)
    assert sum(getattr(record, "event", None) == "progress.refused" for record in caplog.records) == 1


# ------------------------------------------------------------------------------------------------ the context


def context(link):
    claim = make_claim()

    def make_memory(claim):
        return JobMemory(claim.id, claim.lease_token, link, "default", 1000)

    return JobContext(claim, "tests.any", "default", "acme", link=link, make_memory=make_memory)


def test_progress_is_a_heartbeat_and_runs_no_sql():
    link = LooseLink()
    context(link).progress(1, 2, "x")
    assert link.heard == [70]
    assert link.reports == [ProgressReport(7, 70, Progress(1, 2, "x"))]


@pytest.mark.parametrize("kind", [StopKind.CANCELLED, StopKind.TIMED_OUT])
def test_a_cancelled_or_timed_out_job_ends_where_it_tells_its_progress(kind):
    link = LooseLink([70], Stop(kind, "because"))
    with pytest.raises(JobStopped) as caught:
        context(link).progress(1)
    assert caught.value.kind is kind
    assert link.reports, "the last progress counts"


def test_a_draining_worker_lets_a_job_go_on_that_only_tells_its_progress():
    context(LooseLink([70])).progress(1)


# ------------------------------------------------------------------------------------------------ the board


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def board(clock):
    return ProgressBoard(clock)


def test_only_the_newest_report_of_a_claim_is_taken(board):
    for done in range(5):
        board.report(1, 10, Progress(done))
    board.report(2, 20, Progress(7))
    assert board.take([]) == [ProgressReport(1, 10, Progress(4)), ProgressReport(2, 20, Progress(7))]


def test_between_two_seconds_only_what_has_ended_is_taken(board, clock):
    board.report(1, 10, Progress(1))
    board.take([])
    board.settle(AckReport(frozenset(), frozenset()))
    clock.now += INTERVAL_SECONDS / 2
    board.report(1, 10, Progress(2))
    board.report(2, 20, Progress(2))
    assert board.take([judge_result(make_claim(2), None, 1, 9)]) == [ProgressReport(2, 20, Progress(2))]
    clock.now += INTERVAL_SECONDS / 2
    assert board.take([]) == [ProgressReport(1, 10, Progress(2))]


def test_what_a_failed_turn_took_is_taken_again_unless_there_is_something_newer(board, clock):
    board.report(1, 10, Progress(1))
    board.report(2, 20, Progress(1))
    board.take([])
    board.report(2, 20, Progress(2))
    board.put_back()
    clock.now += INTERVAL_SECONDS
    assert set(board.take([])) == {ProgressReport(1, 10, Progress(1)), ProgressReport(2, 20, Progress(2))}


def test_what_was_busy_is_kept_and_what_was_stale_is_not_taken_again(board, clock):
    board.report(1, 10, Progress(1))
    board.report(2, 20, Progress(1))
    board.take([])
    board.settle(AckReport(busy=frozenset({1}), stale=frozenset({2})))
    board.report(2, 20, Progress(2))
    clock.now += INTERVAL_SECONDS
    assert board.take([]) == [ProgressReport(1, 10, Progress(1))]


def test_of_two_claims_of_one_job_the_later_one_counts(board):
    board.report(1, 11, Progress(2))
    board.report(1, 10, Progress(9))
    assert board.take([]) == [ProgressReport(1, 11, Progress(2))]


def test_a_mark_waits_with_the_progress_and_never_replaces_it(board, clock):
    board.mark(1, 10)
    assert board.take([]) == [ProgressReport(1, 10, None)]
    board.settle(AckReport(busy=frozenset({1}), stale=frozenset()))
    board.report(1, 10, Progress(1))
    board.mark(1, 10)
    clock.now += INTERVAL_SECONDS
    assert board.take([]) == [ProgressReport(1, 10, Progress(1))]
