"""What a handler may know of its own job."""

import threading

from asgiref.sync import sync_to_async

from django_pgbroker.registry import JobType
from django_pgbroker.worker.context import JobContext, current_job
from django_pgbroker.worker.executor import Directory, Executor
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.interruption import Interruptible
from tests.worker.claims import make_claim
from tests.worker.links import LooseLink


def run(handler, *, arguments=None, stopping=(), **columns):
    """Run ``handler`` and return its verdict; claims with tokens in ``stopping`` should stop."""
    directory = Directory({1: JobType("tests.any", handler)}, {1: "mail"}, {1: "acme"})
    claim = make_claim(arguments=arguments, **columns)
    executor = Executor(directory, 1000, LooseLink(stopping), HandlerHeartbeats())
    return executor.execute(claim, Interruptible())


def test_the_context_tells_all_about_the_job():
    seen = []
    verdict = run(
        lambda ctx: seen.extend([ctx]),
        attempt=2, max_attempts=5, correlation_id="c-1", headers='{"trace": "abc"}', deadline_at=1_700_000_000.0,
    )  # fmt: skip
    assert verdict.error is None
    [ctx] = seen
    assert isinstance(ctx, JobContext)
    assert (ctx.id, ctx.job_type, ctx.queue, ctx.tenant) == (7, "tests.any", "mail", "acme")
    assert (ctx.attempt, ctx.max_attempts, ctx.lease_token) == (2, 5, 70)
    assert (ctx.correlation_id, ctx.headers) == ("c-1", {"trace": "abc"})
    assert ctx.deadline_at.isoformat() == "2023-11-14T22:13:20+00:00"
    assert ctx.idempotency_key == "pgbroker-job-7"


def test_a_job_without_extras_has_no_deadline_and_no_headers():
    seen = []
    run(lambda ctx: seen.extend([ctx]))
    assert (seen[0].deadline_at, seen[0].headers, seen[0].correlation_id) == (None, {}, None)


def test_ctx_travels_beside_the_arguments():
    assert run(lambda ctx, left, right: [ctx.id, left, right], arguments={"left": 1, "right": 2}).result == "[7,1,2]"


def test_the_current_job_is_known_where_no_ctx_is_asked_for():
    assert run(lambda: current_job().id).result == "7"
    assert current_job() is None


def test_the_current_job_is_known_in_async_handlers_and_in_what_they_call():
    async def handler():
        inner = await sync_to_async(lambda: current_job().id)()
        return [current_job().id, inner]

    assert run(handler).result == "[7,7]"
    assert current_job() is None


def test_async_handlers_do_their_synchronous_calls_in_the_thread_of_their_slot():
    async def handler():
        return await sync_to_async(threading.get_ident)()

    assert run(handler).result == str(threading.get_ident())


def test_a_job_that_should_stop_is_told_and_another_is_not():
    assert run(lambda ctx: ctx.should_stop(), stopping={70}).result == "true"
    assert run(lambda ctx: ctx.should_stop(), stopping={80}).result == "false"
