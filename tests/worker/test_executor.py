"""Whatever a handler does, a verdict comes out. No database: one claim after the other, in the thread of the test."""

import asyncio
import contextvars
import json
import logging

import pytest

from django_pgbroker.domain.backoff import Constant
from django_pgbroker.domain.errors import PgbrokerError
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verdicts import Cancel, Retry, Snooze
from django_pgbroker.registry import JobType
from django_pgbroker.worker.executor import Directory, Executor
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.interruption import Interruptible
from tests.worker.claims import make_claim
from tests.worker.links import LooseLink

HALF_A_MINUTE = Constant(30)


def execute(handler, arguments=None, *, limit=65_536, retry=HALF_A_MINUTE, store_result=True, **columns):
    """Run ``handler`` as one claimed job and return its verdict."""
    job_type = JobType("tests.any", handler, retry_policy=retry, store_result=store_result)
    executor = Executor(Directory({1: job_type}, {1: "default"}, {1: "acme"}), limit, LooseLink(), HandlerHeartbeats())
    return executor.execute(make_claim(arguments=arguments, **columns), Interruptible())


class Odd(BaseException):
    """Neither an Exception nor any other known kind."""


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Deadly(Exception):
    def __str__(self):
        raise SystemExit(3)


def recurse():
    recurse()


ERRORS = [
    (ValueError("wrong"), "builtins.ValueError", "wrong"),
    (SystemExit(0), "builtins.SystemExit", "0"),
    (SystemExit("x"), "builtins.SystemExit", "x"),
    (GeneratorExit(), "builtins.GeneratorExit", ""),
    (KeyboardInterrupt(), "builtins.KeyboardInterrupt", ""),
    (asyncio.CancelledError(), "asyncio.exceptions.CancelledError", ""),
    (MemoryError(), "builtins.MemoryError", ""),
    (RecursionError("deep"), "builtins.RecursionError", "deep"),
    (StopIteration(1), "builtins.StopIteration", "1"),
    (Odd("strange"), f"{__name__}.Odd", "strange"),
    (Unprintable(), f"{__name__}.Unprintable", "<the text of this error raised RuntimeError>"),
    (Deadly(), f"{__name__}.Deadly", "<the text of this error raised SystemExit>"),
    (ValueError("nul \x00 byte"), "builtins.ValueError", r"nul \x00 byte"),
    (ValueError("lone \ud800"), "builtins.ValueError", r"lone \ud800"),
    (ExceptionGroup("two", [ValueError("1"), KeyError("2")]), "builtins.ExceptionGroup", "two (2 sub-exceptions)"),
]


def name_of(value):
    return type(value).__name__ if isinstance(value, BaseException) else ""


@pytest.mark.parametrize(("error", "error_class", "message"), ERRORS, ids=name_of)
def test_whatever_is_raised_is_a_failure_with_its_class_and_text(error, error_class, message):
    def handler():
        raise error

    verdict = execute(handler)

    assert (verdict.outcome, verdict.next_state, verdict.delay_seconds) == (Outcome.FAILED, JobState.SCHEDULED, 30)
    assert (verdict.error.error_class, verdict.error.message) == (error_class, message)
    assert "raise error" in verdict.error.traceback
    assert "\x00" not in verdict.error.traceback
    verdict.error.traceback.encode()


@pytest.mark.parametrize(
    ("error", "error_class"), [(error, name) for error, name, _ in ERRORS if not isinstance(error, StopIteration)],
    ids=name_of,
)  # fmt: skip
def test_what_an_async_handler_raises_is_a_failure_too(error, error_class):
    async def handler():
        raise error

    verdict = execute(handler)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.error.error_class == error_class
    assert execute(lambda: 5).outcome is Outcome.COMPLETED, "the slot goes on"


def test_a_recursion_without_end_is_a_failure_and_the_slot_goes_on():
    assert execute(recurse).error.error_class == "builtins.RecursionError"
    assert execute(lambda: 5).result == "5"


def test_the_last_attempt_that_fails_makes_a_dead_letter():
    def handler():
        raise ValueError("no")

    verdict = execute(handler, attempt=3, max_attempts=3)
    assert (verdict.next_state, verdict.reason) == (JobState.DEAD, "attempts spent")
    assert verdict.error.message == "no"


def test_a_result_is_stored_as_json_and_none_is_not_stored():
    assert json.loads(execute(lambda: {"pages": [1, 2], "title": "ä"}).result) == {"pages": [1, 2], "title": "ä"}
    assert execute(lambda: None).result is None


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (object(), "has no JSON form"),
        ({1, 2}, "a set has no JSON form"),
        (float("nan"), "is no JSON number"),
        ("\x00", "NUL character"),
        ("\ud800", "lone surrogate"),
        ("x" * 1000, "exceed the limit"),
    ],
    ids=["object", "set", "nan", "nul", "surrogate", "large"],
)
def test_a_result_that_cannot_be_stored_does_not_undo_the_work(value, hint):
    verdict = execute(lambda: value, limit=500)
    assert (verdict.outcome, verdict.next_state, verdict.result) == (Outcome.COMPLETED, JobState.COMPLETED, None)
    assert verdict.reason.startswith("result not stored: ")
    assert hint in verdict.reason


def test_a_result_whose_type_is_hostile_is_a_failure_and_not_the_end_of_the_slot():
    def make_hostile():
        return Hostile()

    class Hostile(dict):
        def __class__(self):
            raise SystemExit

    assert execute(make_hostile).outcome in {Outcome.COMPLETED, Outcome.FAILED}


def test_a_job_type_that_stores_no_result_has_none_whatever_it_returns():
    verdict = execute(object, store_result=False)
    assert (verdict.outcome, verdict.result, verdict.reason) == (Outcome.COMPLETED, None, None)


def raising(error):
    def handler():
        raise error

    return handler


def test_snooze_puts_the_job_off_without_counting_even_at_the_last_attempt():
    verdict = execute(raising(Snooze(90, "the shop is closed")), attempt=3, max_attempts=3)
    assert (verdict.outcome, verdict.next_state, verdict.delay_seconds) == (Outcome.SNOOZED, JobState.SCHEDULED, 90)
    assert (verdict.reason, verdict.error) == ("the shop is closed", None)


async def fetch():
    return 1


async def stream():
    yield 1


@pytest.mark.parametrize("returned", [fetch, stream, lambda: (number for number in (1, 2))])
def test_a_handler_that_returns_what_has_not_run_yet_has_failed(returned):
    verdict = execute(lambda: returned())  # noqa: PLW0108 - the function itself would be async
    assert (verdict.outcome, verdict.next_state) == (Outcome.FAILED, JobState.SCHEDULED)
    assert "has not run" in verdict.error.message


def test_a_result_that_is_not_stored_is_logged(caplog):
    assert execute(lambda: {1, 2}).next_state is JobState.COMPLETED
    assert "result.not_stored" in caplog.text


def test_cancel_ends_the_job_as_cancelled():
    verdict = execute(raising(Cancel("order withdrawn")))
    assert (verdict.outcome, verdict.next_state) == (Outcome.CANCELLED, JobState.CANCELLED)
    assert verdict.reason == "order withdrawn"


def test_retry_counts_and_waits_as_the_handler_says():
    verdict = execute(raising(Retry(5, "rate limit")))
    assert (verdict.outcome, verdict.next_state, verdict.delay_seconds) == (Outcome.FAILED, JobState.SCHEDULED, 5)
    assert execute(raising(Retry()), retry=Constant(12)).delay_seconds == 12
    assert execute(raising(Retry(5)), attempt=3, max_attempts=3).next_state is JobState.DEAD


@pytest.mark.parametrize("seconds", [float("nan"), -5, 0, "soon", None, True])
def test_a_snooze_that_makes_no_sense_is_an_ordinary_failure(seconds):
    def handler():
        raise Snooze(seconds)

    verdict = execute(handler)
    assert (verdict.outcome, verdict.next_state) == (Outcome.FAILED, JobState.SCHEDULED)
    assert "Snooze(" in verdict.error.message


def test_a_reason_that_is_no_text_still_gives_a_verdict():
    verdict = execute(raising(Snooze(5, reason=3)))
    assert verdict.next_state in {JobState.SCHEDULED, JobState.PENDING}


class Broken:
    def delay_seconds(self, attempt, random):
        raise ZeroDivisionError("a bug in the policy")


def test_a_retry_policy_that_fails_costs_a_minute_and_not_the_slot(caplog):
    verdict = execute(raising(ValueError("first")), retry=Broken())
    assert (verdict.next_state, verdict.delay_seconds) == (JobState.SCHEDULED, 60)
    assert "ZeroDivisionError" in verdict.reason
    assert execute(raising(ValueError()), retry=Broken(), attempt=3).next_state is JobState.DEAD


def test_arguments_that_no_longer_fit_the_handler_fail_with_its_name_and_the_argument():
    def send_receipt(order_id):
        return order_id

    verdict = execute(send_receipt, {"order": 7})
    assert verdict.outcome is Outcome.FAILED
    assert "send_receipt() got an unexpected keyword argument 'order'" in verdict.error.message
    missing = execute(send_receipt, {})
    assert "missing 1 required positional argument: 'order_id'" in missing.error.message


def test_a_job_whose_payload_row_is_gone_fails_with_the_table_that_lacks_it():
    job_type = JobType("tests.any", lambda: 1)
    executor = Executor(Directory({1: job_type}, {1: "default"}, {1: "acme"}), 1000, LooseLink(), HandlerHeartbeats())
    verdict = executor.execute(make_claim()._replace(arguments=None), Interruptible())
    assert verdict.error.message == "job 7 has no row in pgbroker.job_payload"


def test_the_run_time_is_measured_for_success_and_failure():
    assert execute(lambda: 1).run_microseconds > 0
    assert execute(raising(ValueError())).run_microseconds > 0


letter = contextvars.ContextVar("letter", default="none")


def read_letter():
    return letter.get()


def test_what_a_handler_sets_in_its_context_does_not_reach_the_next_job():
    def set_letter():
        letter.set("a")
        return letter.get()

    async def set_letter_async():
        letter.set("b")
        return letter.get()

    assert execute(set_letter).result == '"a"'
    assert execute(read_letter).result == '"none"'
    assert execute(set_letter_async).result == '"b"'
    assert execute(read_letter).result == '"none"'


def events(caplog):
    return [(record.event, record.levelname) for record in caplog.records if hasattr(record, "event")]


def test_failures_are_warnings_dead_letters_are_errors_and_directives_are_neither(caplog):
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        execute(raising(ValueError("payload of a customer")))
        execute(raising(ValueError()), attempt=3)
        execute(raising(Snooze(5)))
        execute(raising(Cancel()))
    assert events(caplog) == [
        ("job.failed", "WARNING"), ("job.dead", "ERROR"), ("job.snoozed", "INFO"), ("job.cancelled", "INFO"),
    ]  # fmt: skip
    assert caplog.records[0].fields == {"job": 7, "job_type": "tests.any", "attempt": 1, "token": 70}
    assert caplog.records[0].exc_info is not None


def test_an_error_of_our_own_is_a_failure_like_any_other():
    assert execute(raising(PgbrokerError("no"))).error.error_class == "django_pgbroker.domain.errors.PgbrokerError"
