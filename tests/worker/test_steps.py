"""Jobs that go on where an earlier attempt ended: steps that run once, and the cursor of a long loop."""

import asyncio
import contextlib

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, transaction

from django_pgbroker.domain.errors import InvalidName, InvalidOption
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.stops import JobStopped, Stop, StopKind
from django_pgbroker.models import ArchivedJob, Execution, Job, JobStep
from django_pgbroker.worker.steps import JobMemory, Step
from tests.maintenance.waiting import wait_until
from tests.worker.links import LooseLink


class Log:
    """What handlers did, in order."""

    def __init__(self):
        self.entries = []

    def fetch(self, what):
        self.entries.append(what)
        return {"what": what, "call": len(self.entries)}

    async def afetch(self, what):
        await asyncio.sleep(0)
        return self.fetch(what)


@pytest.fixture
def log():
    return Log()


# ------------------------------------------------------------------------------------------------ over attempts


def test_a_step_runs_once_over_retries_and_its_result_is_remembered(declare, run_until_empty, log):
    @declare(max_attempts=3)
    def load(ctx):
        with ctx.step("download") as step:
            if step.is_new:
                step.result = log.fetch("download")
        count = ctx.run_step("count", lambda: len(log.fetch("count")))
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return [step.result, count]

    handle = load.enqueue()
    run_until_empty()
    assert handle.result() == [{"what": "download", "call": 1}, 2]
    assert log.entries == ["download", "count"]
    assert not JobStep.objects.exists()


def test_a_step_that_raises_is_not_remembered_and_runs_again(declare, run_until_empty, log):
    @declare(max_attempts=2)
    def load(ctx):
        ctx.run_step("first", log.fetch, "first")
        with ctx.step("second"):
            log.fetch("second")
            if ctx.attempt == 1:
                raise ValueError("in the middle")

    handle = load.enqueue()
    run_until_empty()
    assert handle.status() is JobState.COMPLETED
    assert log.entries == ["first", "second", "second"]


def test_a_step_that_has_failed_may_be_tried_again_in_the_same_attempt(declare, run_until_empty, log):
    @declare(max_attempts=1)
    def load(ctx):
        with contextlib.suppress(ZeroDivisionError):
            ctx.run_step("fetch", divmod, 1, 0)
        return ctx.run_step("fetch", log.fetch, "again")

    handle = load.enqueue()
    run_until_empty()
    assert handle.result() == {"what": "again", "call": 1}


def test_a_step_without_a_result_and_nested_steps_are_remembered_too(declare, run_until_empty, log):
    @declare(max_attempts=2)
    def load(ctx):
        with ctx.step("outer") as outer:
            with ctx.step("inner") as inner:
                if inner.is_new:
                    log.fetch("inner")
            if ctx.attempt == 1:
                raise ValueError
        return [outer.is_new, inner.is_new, inner.result]

    handle = load.enqueue()
    run_until_empty()
    assert handle.result() == [True, False, None]
    assert log.entries == ["inner"]


def test_steps_and_cursor_work_in_async_handlers(declare, run_until_empty, log):
    @declare(max_attempts=2)
    async def load(ctx):
        async with ctx.step("download") as step:
            if step.is_new:
                step.result = await log.afetch("download")
        counted = await ctx.arun_step("count", log.afetch, "count")
        cursor = await ctx.acursor()
        await ctx.asave_cursor([ctx.attempt])
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return [step.result["call"], counted["call"], cursor]

    handle = load.enqueue()
    run_until_empty()
    assert handle.result() == [1, 2, [1]]
    assert log.entries == ["download", "count"]


def test_a_loop_goes_on_behind_its_cursor(declare, run_until_empty, log):
    @declare(max_attempts=5)
    def load(ctx):
        for number in range(ctx.cursor or 0, 10):
            log.fetch(number)
            ctx.save_cursor(number + 1)
            if number in {2, 5, 8}:
                raise ValueError("a bad moment")

    handle = load.enqueue()
    run_until_empty()
    assert handle.status() is JobState.COMPLETED
    assert log.entries == list(range(10))


def test_a_dead_letter_keeps_what_it_remembers(declare, run_until_empty):
    @declare(max_attempts=1)
    def load(ctx):
        ctx.run_step("download", dict, rows=3)
        ctx.save_cursor("row 17")
        raise ValueError

    handle = load.enqueue()
    run_until_empty()
    assert handle.status() is JobState.DEAD
    assert dict(JobStep.objects.filter(job_id=handle.id).values_list("name", "result")) == {
        "download": {"rows": 3}, "": "row 17",
    }  # fmt: skip


def test_inside_a_transaction_a_step_is_remembered_with_its_effects_or_not_at_all(declare, run_until_empty, log):
    @declare(max_attempts=2)
    def load(ctx):
        with transaction.atomic():
            ctx.run_step("kept", log.fetch, "kept")
        with transaction.atomic():
            ctx.run_step("undone", log.fetch, "undone")
            ctx.save_cursor(ctx.attempt)
            if ctx.attempt == 1:
                raise ValueError("rolled back")
        return ctx.cursor

    handle = load.enqueue()
    run_until_empty()
    assert handle.result() == 2
    assert log.entries == ["kept", "undone", "undone"]


def test_an_attempt_reads_its_memory_once(declare, run_until_empty):
    statements = []

    def note(execute, sql, params, many, context):
        statements.append(sql)
        return execute(sql, params, many, context)

    @declare()
    def load(ctx):
        with connection.execute_wrapper(note):
            for number in range(3):
                ctx.run_step(f"step {number}", int)
            ctx.save_cursor(ctx.cursor)

    load.enqueue()
    run_until_empty()
    assert [sql.split()[0] for sql in statements] == ["select", "with", "with", "with", "with"]


# ------------------------------------------------------------------------------------------------ stops


def test_a_draining_worker_ends_a_job_between_two_steps_and_the_next_worker_goes_on(declare, start, gate, log):
    @declare(max_attempts=1)
    def load(ctx):
        for number in range(4):
            with ctx.step(f"step {number}") as step:
                if step.is_new:
                    log.fetch(number)
                    if number == 1:
                        gate.wait()

    handle = load.enqueue()
    worker = start()
    gate.wait_until_arrived()
    worker.worker.stopping.request_drain()
    gate.open()
    assert worker.join() == 0
    assert log.entries == [0, 1]
    job = Job.objects.get(pk=handle.id)
    assert (job.state, job.attempt, job.interruptions) == (JobState.PENDING, 0, 1)
    assert Execution.objects.get().outcome == Outcome.INTERRUPTED

    start(until_empty=True).join()
    assert handle.status() is JobState.COMPLETED
    assert log.entries == [0, 1, 2, 3]


def test_saving_the_cursor_ends_the_job_of_a_draining_worker_after_the_save(declare, start, gate, log):
    @declare()
    def load(ctx):
        for number in range(ctx.cursor or 0, 5):
            log.fetch(number)
            if number == 1:
                gate.wait()
            ctx.save_cursor(number + 1)

    handle = load.enqueue()
    worker = start()
    gate.wait_until_arrived()
    worker.worker.stopping.request_drain()
    gate.open()
    worker.join()
    assert log.entries == [0, 1]
    assert JobStep.objects.get().result == 2

    start(until_empty=True).join()
    assert handle.status() is JobState.COMPLETED
    assert log.entries == list(range(5))


def test_saving_the_cursor_ends_an_async_job_of_a_draining_worker_too(declare, start, gate):
    ended = []

    @declare()
    async def load(ctx):
        await sync_to_async(gate.wait)()
        try:
            await ctx.asave_cursor(7)
        except JobStopped as stopped:
            ended.append(stopped.kind)
            raise

    handle = load.enqueue()
    worker = start()
    gate.wait_until_arrived()
    worker.worker.stopping.request_drain()
    gate.open()
    assert worker.join() == 0
    assert ended == [StopKind.DRAINING]
    assert JobStep.objects.get().result == 7
    job = Job.objects.get(pk=handle.id)
    assert (job.state, job.attempt) == (JobState.PENDING, 0)


def test_a_drain_undoes_no_save_inside_a_transaction(declare, start, gate, log):
    @declare()
    def load(ctx):
        for number in range(ctx.cursor or 0, 5):
            ctx.raise_if_stopped()
            with transaction.atomic():
                log.fetch(number)
                if number == 1:
                    gate.wait()
                ctx.save_cursor(number + 1)

    load.enqueue()
    worker = start()
    gate.wait_until_arrived()
    worker.worker.stopping.request_drain()
    gate.open()
    worker.join()
    assert JobStep.objects.get().result == 2
    start(until_empty=True).join()
    assert log.entries == list(range(5))


@pytest.mark.parametrize("remember", ["step", "cursor"])
def test_a_claim_that_is_lost_remembers_nothing_and_its_handler_ends(declare, start, gate, rows, remember):
    ended = []

    @declare()
    def load(ctx):
        gate.wait()
        try:
            if remember == "step":
                ctx.run_step("late", int)
            else:
                ctx.save_cursor(1)
        except JobStopped as stopped:
            ended.append(stopped.kind)
            raise

    handle = load.enqueue()
    worker = start()
    gate.wait_until_arrived()
    rows.run("update pgbroker.job set lease_token = nextval('pgbroker.lease_token_seq') where id = %s", handle.id)
    gate.open()
    wait_until(lambda: ended, "the handler ends")
    worker.drain()
    assert ended == [StopKind.LOST]
    assert not JobStep.objects.exists()
    assert Job.objects.get(pk=handle.id).state == JobState.RUNNING


# ------------------------------------------------------------------------------------------------ misuse


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 1e400, "a\x00b", "\ud800", (1, 2), b"x", {1: 2}, object(), "x" * 70_000],
    ids=["nan", "infinity", "1e400", "NUL", "surrogate", "tuple", "bytes", "key", "object", "too large"],
)
@pytest.mark.parametrize("remember", ["step", "cursor"])
def test_what_cannot_be_remembered_fails_the_job_with_its_path_and_the_worker_goes_on(
    declare, run_until_empty, remember, value
):
    @declare(max_attempts=1)
    def load(ctx):
        if remember == "step":
            ctx.run_step("bad", lambda: [value])
        else:
            ctx.save_cursor([value])

    @declare()
    def fine(ctx):
        ctx.run_step("good", int)

    failed, after = load.enqueue(), fine.enqueue()
    run_until_empty()
    assert (failed.status(), after.status()) == (JobState.DEAD, JobState.COMPLETED)
    dead = ArchivedJob.objects.get(pk=failed.id)
    assert dead.error_class.rpartition(".")[2] in {"InvalidPayload", "PayloadTooLarge"}
    assert dead.error_message.startswith("step('bad').result" if remember == "step" else "cursor")


def test_a_step_entered_twice_in_one_attempt_is_an_error(declare, run_until_empty, log):
    @declare(max_attempts=1)
    def load(ctx):
        ctx.run_step("same", log.fetch, 1)
        ctx.run_step("same", log.fetch, 2)

    handle = load.enqueue()
    run_until_empty()
    dead = ArchivedJob.objects.get(pk=handle.id)
    assert "give each step a name of its own" in dead.error_message
    assert log.entries == [1]


def test_the_result_of_a_step_that_is_done_cannot_be_set(declare, run_until_empty):
    seen = []

    @declare(max_attempts=2)
    def load(ctx):
        with ctx.step("forgetful") as step:
            try:
                step.result = ctx.attempt
            except InvalidOption as error:
                seen.append(str(error))
        if ctx.attempt == 1:
            raise ValueError
        return step.result

    handle = load.enqueue()
    run_until_empty()
    assert handle.result() == 1
    [message] = seen
    assert "if step.is_new" in message


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\x00b", "\ud800", 7, None])
def test_a_step_needs_a_printable_name(name):
    memory = JobMemory(7, 70, LooseLink(), "default", 1000)
    with pytest.raises(InvalidName, match="1 to 200 printable"):
        Step(memory, name)


@pytest.mark.parametrize("kind", list(StopKind))
def test_entering_a_step_ends_a_job_that_should_stop(kind):
    memory = JobMemory(7, 70, LooseLink([70], Stop(kind, "because")), "default", 1000)
    with pytest.raises(JobStopped) as caught:
        memory.enter("download")
    assert caught.value.kind is kind
