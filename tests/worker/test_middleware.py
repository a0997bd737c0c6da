"""The chain around handlers: order, errors, async, what cannot be used, and what is ready to use."""

import asyncio
import logging
from zoneinfo import ZoneInfo

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.utils import timezone, translation

from django_pgbroker import current_job
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.domain.states import JobState
from django_pgbroker.middleware import ContextLogFilter
from django_pgbroker.models import DeadLetter, JobPayload, Worker
from django_pgbroker.registry import JobType
from django_pgbroker.worker.middleware import load_chain
from tests.worker import middleware
from tests.worker.claims import make_claim
from tests.worker.links import make_loose_context
from tests.worker.middleware import BUILT, SEEN
from tests.worker.workers import QUICK


@pytest.fixture(autouse=True)
def _forget():
    SEEN.clear()
    BUILT.clear()


@pytest.fixture
def use(settings):
    """Configures middleware by its names."""

    def use(*names):
        paths = [name if "." in name else f"{middleware.__name__}.{name}" for name in names]
        settings.PGBROKER = {**QUICK, "MIDDLEWARE": paths}

    return use


READY = "django_pgbroker.middleware."


def test_the_first_is_the_outermost_and_each_is_built_once(declare, run_until_empty, use):
    use("outer", "Inner")

    @declare()
    def add(a: int, b: int) -> int:
        SEEN.append("handler")
        return a + b

    handles = [add.enqueue(1, 2), add.enqueue(1, 2)]
    run_until_empty(concurrency=1, types=("tests.*",))

    assert [handle.result() for handle in handles] == [3, 3]
    assert SEEN[:5] == ["outer before tests.add", "inner before", "handler", "inner after", "outer after"]
    assert SEEN[5:] == SEEN[:5]
    assert BUILT == ["outer"]


def test_what_is_swallowed_is_a_result_and_what_is_raised_is_a_failure(declare, run_until_empty, use):
    @declare(max_attempts=1)
    def fail():
        raise ValueError("wrong")

    use("swallow")
    swallowed = fail.enqueue()
    run_until_empty(types=("tests.*",))
    use("refuse")
    refused = fail.enqueue()
    run_until_empty(types=("tests.*",))

    assert swallowed.result() == "swallowed wrong"
    assert refused.status() is JobState.DEAD
    assert DeadLetter.objects.get(pk=refused.id).error_class == "builtins.PermissionError"


def test_an_exception_of_the_handler_passes_through(declare, run_until_empty, use):
    use("outer", "both")

    @declare(max_attempts=1)
    def fail():
        raise KeyError("gone")

    handle = fail.enqueue()
    run_until_empty(types=("tests.*",))

    assert DeadLetter.objects.get(pk=handle.id).error_class == "builtins.KeyError"
    assert SEEN[-1] == "outer after"


def test_async_handlers_run_within_async_middleware(declare, run_until_empty, use):
    use("both")

    @declare()
    async def greet(ctx, name: str) -> str:
        return f"{name} {ctx.attempt}"

    @declare()
    def plain() -> str:
        return "plain"

    handles = [greet.enqueue(name="you"), plain.enqueue()]
    run_until_empty(types=("tests.*",))

    assert [handle.result() for handle in handles] == ["you 1", "plain"]
    assert sorted(SEEN) == ["async before", "sync before"]


def test_one_that_is_not_used_is_left_out(declare, run_until_empty, use):
    use("unused", "outer")

    @declare()
    def noop():
        """Nothing."""

    noop.enqueue()
    run_until_empty(types=("tests.*",))
    assert SEEN == ["outer before tests.noop", "outer after"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["outer", "absent"], r"middleware.absent' cannot be imported"),
        (["SEEN"], r"SEEN' is \[\], no class and no function"),
        (["broken"], "broken' cannot be built: RuntimeError: no server to report to"),
        (["returns_nothing"], "must return a callable, not None"),
    ],
)
def test_one_that_cannot_be_used_stops_the_start_before_anything_is_registered(declare, start, use, names, message):
    @declare()
    def noop():
        """Nothing."""

    use(*names)
    worker = start("default", types=("tests.noop",))
    with pytest.raises(ConfigurationError, match=message) as caught:
        worker.join()
    worker.error = None
    assert not Worker.objects.exists()

    assert [(found.id, found.msg) for found in run_checks() if found.id.startswith("django_pgbroker")] == [
        ("django_pgbroker.E003", str(caught.value))
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("outer", r"outer' is not made for async handlers .*'tests.fetch' is one"),
        ("forgetful", "forgetful' gave something sync for async handlers"),
    ],
)
def test_one_that_cannot_serve_a_job_type_stops_workers_that_take_it_and_no_others(declare, start, use, name, message):
    @declare()
    async def fetch():
        """Nothing."""

    @declare()
    def noop():
        """Nothing."""

    use(name)
    worker = start("default", types=("tests.fetch", "tests.noop"))
    with pytest.raises(ConfigurationError, match=message):
        worker.join()
    worker.error = None
    assert start(types=("tests.noop",), until_empty=True).join() == 0


def test_a_check_warns_of_job_types_that_cannot_be_served(declare, use):
    @declare()
    async def fetch():
        """Nothing."""

    use("outer")
    assert "django_pgbroker.W003" in {found.id for found in run_checks()}


def test_without_middleware_no_headers_are_stored_and_with_it_they_arrive(declare, run_until_empty, use):
    @declare()
    def show(ctx):
        return ctx.headers

    bare = show.enqueue()
    use("Tracing")
    traced = show.enqueue()
    later = show.using(delay=0.01).enqueue()

    assert JobPayload.objects.get(pk=bare.id).headers is None
    use()
    run_until_empty(types=("tests.*",))
    assert [handle.result() for handle in (bare, traced, later)] == [{}, {"trace": "t-1"}, {"trace": "t-1"}]


# ------------------------------------------------------------------------------------------------ the ready ones


def test_a_handler_runs_in_the_language_and_the_time_zone_of_its_producer(declare, run_until_empty, use, settings):
    use(READY + "LocaleMiddleware")

    @declare()
    def locale():
        return [translation.get_language(), timezone.get_current_timezone_name()]

    @declare()
    async def locale_async():
        return [translation.get_language(), timezone.get_current_timezone_name()]

    usual = locale.enqueue()
    with translation.override("de"), timezone.override(ZoneInfo("Asia/Tokyo")):
        far = [locale.enqueue(), locale_async.enqueue()]
    with timezone.override(timezone.get_fixed_timezone(330)):
        fixed = locale.enqueue()
    after = locale.enqueue()
    assert JobPayload.objects.get(pk=usual.id).headers is None
    run_until_empty(concurrency=1, types=("tests.*",))

    defaults = [settings.LANGUAGE_CODE, settings.TIME_ZONE]
    assert [handle.result() for handle in far] == [["de", "Asia/Tokyo"]] * 2
    assert fixed.result() == [settings.LANGUAGE_CODE, "+0530"]
    assert (usual.result(), after.result()) == (defaults, defaults)


def test_a_session_setting_of_one_handler_does_not_reach_the_next(declare, run_until_empty, use):
    def ask(text):
        with connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchone()[0]

    @declare()
    def spoil():
        ask("select set_config('work_mem', '7MB', false)")
        return ask("select set_config('timezone', 'Asia/Tokyo', false)")

    @declare()
    def look():
        return [ask("show work_mem"), ask("show timezone"), ask("select pg_backend_pid()")]

    spoil.enqueue()
    spoilt = look.enqueue()
    run_until_empty(concurrency=1, types=("tests.*",))
    assert spoilt.result()[:2] == ["7MB", "Asia/Tokyo"]

    use(READY + "ConnectionHygieneMiddleware")
    before = look.enqueue()
    spoil.enqueue()
    after = look.enqueue()
    run_until_empty(concurrency=1, types=("tests.*",))
    assert before.result() == after.result()
    assert after.result()[:2] != ["7MB", "Asia/Tokyo"]
    assert after.result()[1] == "UTC"


def test_the_log_says_when_a_handler_begins_and_ends_with_its_ids(declare, run_until_empty, use, caplog):
    use(READY + "LoggingMiddleware")

    @declare(max_attempts=1)
    def fail():
        raise ValueError("wrong")

    handle = fail.enqueue()
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        run_until_empty(types=("tests.*",))

    begun, ended = [record for record in caplog.records if record.name == "django_pgbroker.jobs.tests.fail"]
    assert (begun.event, ended.event) == ("handler.started", "handler.finished")
    assert begun.fields["job"] == ended.fields["job"] == handle.id
    assert ended.getMessage().startswith("raised ValueError after 0.0")
    assert 0 <= ended.fields["seconds"] < 5


def test_the_logger_of_the_context_and_the_filter_say_which_job_it_was(declare, run_until_empty, caplog):
    caplog.handler.addFilter(ContextLogFilter())

    @declare()
    def work(ctx):
        ctx.logger.warning("half done", extra={"fields": {"rows": 5}, "colour": "red"})
        logging.getLogger("shop").warning("from below")
        assert current_job().logger is ctx.logger

    handle = work.using(correlation_id="c-7").enqueue()
    run_until_empty(types=("tests.*",))
    logging.getLogger("shop").warning("outside")

    records = {record.getMessage(): record for record in caplog.records}
    ids = {"job": handle.id, "job_type": "tests.work", "attempt": 1, "tenant": "default", "correlation_id": "c-7"}
    assert records["half done"].name == "django_pgbroker.jobs.tests.work"
    assert records["half done"].fields == {**ids, "rows": 5}
    assert records["half done"].colour == "red"
    below = records["from below"]
    assert below.fields == ids
    assert (below.job_id, below.job_type, below.attempt) == (handle.id, "tests.work", 1)
    assert (below.tenant, below.correlation_id) == ("default", "c-7")
    assert records["outside"].job_id == "-"
    caplog.handler.filters.clear()


def test_on_an_event_loop_the_chain_is_awaited(use):
    use("both", READY + "LocaleMiddleware", READY + "LoggingMiddleware", READY + "ConnectionHygieneMiddleware")

    async def fetch(ctx, number: int):
        return [number, ctx.id, translation.get_language()]

    claim = make_claim(number=8, headers='{"language": "fr"}')
    ctx = make_loose_context(claim)
    value = asyncio.run(load_chain().arun(JobType("tests.fetch", fetch), ctx, {"number": 3}))

    assert value == [3, 8, "fr"]
    assert SEEN == ["async before"]
