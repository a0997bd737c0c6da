"""How a handler ended becomes a verdict: what is recorded, and where the job goes."""

import math
from datetime import timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_pgbroker.domain.backoff import Constant
from django_pgbroker.domain.records import ClaimedJob, LapsedJob
from django_pgbroker.domain.states import JobState, Outcome, is_legal
from django_pgbroker.domain.verdicts import (
    MESSAGE_LIMIT,
    REASON_LIMIT,
    TRACEBACK_LIMIT,
    Cancel,
    Retry,
    Snooze,
    interrupt,
    judge_child_death,
    judge_error,
    judge_loss,
    judge_result,
    record_error,
    release,
)

YEAR = 366 * 86_400.0


def claim(attempt=1, max_attempts=3, interruptions=0):
    return ClaimedJob(
        7, 70, 1, 1, 1, attempt, max_attempts, 0, 60, interruptions, 0.0, None, True, 1, "{}", None, None, 0.0, 0
    )


def lapsed(attempt, has_begun=True):
    return LapsedJob(7, 70, attempt, 3, has_begun, 1, "default", "shop.send")


def judge(error, **attempts):
    return judge_error(claim(**attempts), error, 500, Constant(30))


def test_a_returned_value_completes_the_job_and_is_kept_as_json():
    verdict = judge_result(claim(), {"total": 3}, 500, 100)
    assert verdict[:4] == (7, 70, Outcome.COMPLETED, JobState.COMPLETED)
    assert (verdict.run_microseconds, verdict.result, verdict.error, verdict.reason) == (500, '{"total":3}', None, None)


def test_none_stores_no_result_and_gives_no_reason():
    verdict = judge_result(claim(), None, 500, 100)
    assert (verdict.next_state, verdict.result, verdict.reason) == (JobState.COMPLETED, None, None)


@pytest.mark.parametrize("value", [object(), {1}, b"x", "x" * 101, float("nan"), "\x00", {"a": {"b": 1j}}])
def test_work_whose_result_cannot_be_stored_is_done_all_the_same_and_the_reason_says_why(value):
    verdict = judge_result(claim(), value, 500, 100)
    assert (verdict.outcome, verdict.next_state, verdict.result) == (Outcome.COMPLETED, JobState.COMPLETED, None)
    assert verdict.reason.startswith("result not stored: ")


def test_an_error_with_attempts_left_waits_for_the_policy_and_keeps_the_error():
    verdict = judge(ValueError("no such order"))
    assert (verdict.outcome, verdict.next_state, verdict.delay_seconds) == (Outcome.FAILED, JobState.SCHEDULED, 30)
    assert (verdict.error.error_class, verdict.error.message) == ("builtins.ValueError", "no such order")
    assert verdict.reason is None


@pytest.mark.parametrize("attempt", [3, 4])
def test_an_error_on_the_last_attempt_makes_a_dead_letter(attempt):
    verdict = judge(ValueError(), attempt=attempt)
    assert (verdict.outcome, verdict.next_state, verdict.reason) == (Outcome.FAILED, JobState.DEAD, "attempts spent")
    assert verdict.error is not None


@pytest.mark.parametrize("error", [SystemExit(0), KeyboardInterrupt(), GeneratorExit(), BaseException()])
def test_whatever_is_raised_is_a_failure_of_the_job(error):
    assert judge(error).outcome is Outcome.FAILED


def test_a_snooze_waits_and_is_no_failure_even_on_the_last_attempt():
    verdict = judge(Snooze(90, "not yet"), attempt=3)
    assert (verdict.outcome, verdict.next_state, verdict.delay_seconds) == (Outcome.SNOOZED, JobState.SCHEDULED, 90)
    assert (verdict.error, verdict.reason) == (None, "not yet")


def test_a_cancel_ends_the_job_and_is_no_failure():
    verdict = judge(Cancel("order was withdrawn"))
    assert (verdict.outcome, verdict.next_state) == (Outcome.CANCELLED, JobState.CANCELLED)
    assert (verdict.error, verdict.reason) == (None, "order was withdrawn")


def test_a_reason_may_be_anything_such_as_the_error_that_was_caught():
    verdict = judge(Cancel(LookupError("no such order")))
    assert (verdict.outcome, verdict.reason) == (Outcome.CANCELLED, "no such order")


def test_a_retry_chooses_its_delay_or_leaves_it_to_the_policy():
    assert judge(Retry(after_seconds=5)).delay_seconds == 5
    assert judge(Retry()).delay_seconds == 30
    assert judge(Retry(after_seconds=0)).next_state is JobState.PENDING


def test_a_retry_on_the_last_attempt_is_a_dead_letter_with_its_reason():
    verdict = judge(Retry(5, "the till is closed"), attempt=3)
    assert (verdict.next_state, verdict.reason) == (JobState.DEAD, "the till is closed")


@pytest.mark.parametrize(
    ("given_delay", "seconds"),
    [
        (timedelta(minutes=1), 60),
        (float("inf"), YEAR),
        (1e300, YEAR),
        (timedelta.max, YEAR),
        (10**400, YEAR),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_delay_that_no_date_can_take_is_bounded(given_delay, seconds):
    verdict = judge(Snooze(given_delay))
    assert (verdict.delay_seconds, verdict.next_state) == (seconds, JobState.SCHEDULED)


@pytest.mark.parametrize("given_delay", [-5, 0, 0.5, float("nan"), "soon", None, True, timedelta(0)], ids=str)
def test_a_snooze_is_a_second_at_least_or_an_error_in_the_handler(given_delay):
    with pytest.raises(ValueError, match="give a number of seconds"):
        Snooze(given_delay)


@pytest.mark.parametrize("given_delay", [-5, float("nan"), "soon", False, timedelta(-1)], ids=str)
def test_a_retry_waits_a_number_of_seconds_or_is_an_error_in_the_handler(given_delay):
    with pytest.raises(ValueError, match="give a number of seconds"):
        Retry(given_delay)


@pytest.mark.parametrize("answer", [-5, float("nan"), "soon", None], ids=str)
def test_a_retry_policy_that_answers_nonsense_means_no_delay(answer):
    policy = SimpleNamespace(delay_seconds=lambda attempt, random: answer)
    verdict = judge_error(claim(), ValueError(), 500, policy)
    assert (verdict.delay_seconds, verdict.next_state) == (0, JobState.PENDING)


def test_a_loss_spends_an_attempt_and_the_last_one_makes_a_dead_letter():
    back = judge_loss(lapsed(attempt=1), 12.5)
    assert back[:5] == (7, 70, Outcome.LOST, JobState.SCHEDULED, 12.5)
    dead = judge_loss(lapsed(attempt=3), 12.5)
    assert (dead.outcome, dead.next_state, dead.reason) == (Outcome.LOST, JobState.DEAD, "worker lost")


def test_a_job_whose_child_process_died_has_spent_an_attempt_and_says_how_the_child_ended():
    back = judge_child_death(claim(attempt=1), "by signal 9 (SIGKILL)", 500, Constant(30))
    assert back[:6] == (7, 70, Outcome.LOST, JobState.SCHEDULED, 30, 500)
    assert back.reason == "its child process ended by signal 9 (SIGKILL)"
    dead = judge_child_death(claim(attempt=3), "with status 0", 500, Constant(30))
    assert (dead.outcome, dead.next_state, dead.delay_seconds) == (Outcome.LOST, JobState.DEAD, 0)
    assert dead.reason == "its child process ended with status 0"


@pytest.mark.parametrize("attempt", [1, 3])
def test_a_loss_before_the_job_began_sends_it_back_at_once_and_never_to_the_dead_letters(attempt):
    back = judge_loss(lapsed(attempt, has_begun=False), 12.5)
    assert back[:5] == (7, 70, Outcome.LOST, JobState.PENDING, 0)
    assert back.reason == "worker lost before the job began"


def test_what_never_began_or_was_interrupted_is_pending_again():
    assert release(claim())[:4] == (7, 70, Outcome.RELEASED, JobState.PENDING)
    interrupted = interrupt(claim(), "deploy")
    assert (interrupted.outcome, interrupted.next_state, interrupted.reason) == (
        Outcome.INTERRUPTED, JobState.PENDING, "deploy",
    )  # fmt: skip


@pytest.mark.parametrize(("times", "most", "next_state"), [(2, None, "PENDING"), (1, 2, "PENDING"), (2, 2, "DEAD")])
def test_what_was_interrupted_as_often_as_allowed_is_dead_the_next_time(times, most, next_state):
    verdict = interrupt(claim(interruptions=times), "deploy", most)
    assert (verdict.outcome, verdict.next_state) == (Outcome.INTERRUPTED, JobState[next_state])
    assert "deploy" in verdict.reason


class Hostile(Exception):
    def __init__(self, text):
        super().__init__()
        self.text = text

    def __str__(self):
        if self.text is None:
            raise RuntimeError("no text")
        return self.text


@pytest.mark.parametrize("text", ["\x00", "\ud800", "x" * 1_000_000, None, 42])
def test_an_error_is_recorded_whatever_its_text_does(text):
    record = record_error(Hostile(text))
    for kept, limit in ((record.message, MESSAGE_LIMIT), (record.traceback, TRACEBACK_LIMIT)):
        assert 0 < len(kept) <= limit
        assert "\x00" not in kept
        kept.encode("utf-8")


def test_the_traceback_names_the_line_that_raised():
    try:
        math.sqrt(-1)
    except ValueError as error:
        record = record_error(error)
    assert "math.sqrt(-1)" in record.traceback
    assert record.error_class == "builtins.ValueError"


def test_a_reason_of_any_length_is_kept_within_its_limit():
    assert len(judge(Cancel("x" * 10_000)).reason) <= REASON_LIMIT


@given(
    error=st.one_of(
        st.builds(ValueError, st.text()),
        st.builds(Snooze, st.one_of(st.floats(1), st.integers(1), st.timedeltas(timedelta(seconds=1))), st.text()),
        st.builds(Retry, st.one_of(st.none(), st.floats(0), st.integers(0)), st.text()),
        st.builds(Cancel, st.text()),
    ),
    attempt=st.integers(1, 32_767),
    max_attempts=st.integers(1, 1000),
)
def test_every_verdict_is_a_legal_move_with_a_bounded_delay_and_storable_texts(error, attempt, max_attempts):
    verdict = judge(error, attempt=attempt, max_attempts=max_attempts)
    assert is_legal(JobState.RUNNING, verdict.next_state)
    assert 0 <= verdict.delay_seconds <= YEAR
    assert (verdict.delay_seconds > 0) == (verdict.next_state is JobState.SCHEDULED)
    if verdict.next_state is JobState.DEAD:
        assert attempt >= max_attempts
        assert verdict.reason
    for text in (verdict.reason, *(verdict.error or ())[:3]):
        assert text is None or ("\x00" not in text and text.encode("utf-8") is not None)
