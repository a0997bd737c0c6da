"""Judge how a handler ended: what is recorded, and where its job goes next. For the executor and the reclaimer."""

import math
import random
from collections.abc import Callable
from datetime import timedelta
from traceback import format_exception

from django_pgbroker.domain.backoff import RetryPolicy
from django_pgbroker.domain.errors import PgbrokerError
from django_pgbroker.domain.fingerprint import fingerprint_error
from django_pgbroker.domain.payload import encode_result, sanitise_text
from django_pgbroker.domain.records import ClaimedJob, ErrorRecord, LapsedJob, OverdueJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.stops import Stop, StopKind

MESSAGE_LIMIT = 2_000
TRACEBACK_LIMIT = 20_000
REASON_LIMIT = 500

#: The reason of a loss that cost no attempt: the job only waited in the worker that died.
LOST_WAITING = "worker lost before the job began"


class Directive(Exception):
    """Base of what a handler raises to decide the fate of its own job."""


def _is_wait(value: object, least_seconds: float) -> bool:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least_seconds


class Retry(Directive):
    """Count this attempt as failed and try again after a delay of the handler's choice.

    Args:
        after_seconds: how long to wait, 0 or more; None leaves it to the retry policy of the job type.
        reason: kept in the history.

    Raises:
        ValueError: ``after_seconds`` is no number of seconds; raised in the handler, it is an ordinary failure.
    """

    def __init__(self, after_seconds: float | None = None, reason: str = "") -> None:
        super().__init__(reason)
        if after_seconds is not None and not _is_wait(after_seconds, 0):
            raise ValueError(f"Retry(after_seconds={after_seconds!r}): give a number of seconds, 0 or more, or None")
        self.after_seconds = after_seconds
        self.reason = reason


class Snooze(Directive):
    """Put the job off without counting an attempt.

    Args:
        seconds: how long to wait, at least a second: nothing counts how often a job snoozes.
        reason: kept in the history.

    Raises:
        ValueError: ``seconds`` is no such number; raised in the handler, it is an ordinary failure.
    """

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason)
        if not _is_wait(seconds, 1):
            raise ValueError(f"Snooze({seconds!r}): give a number of seconds, 1 or more, or a timedelta")
        self.seconds = seconds
        self.reason = reason


class Cancel(Directive):
    """End the job as cancelled: it is neither done nor worth another attempt.

    Args:
        reason: kept in the history.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


def judge_result(claim: ClaimedJob, value: object, run_microseconds: int, limit: int) -> Verdict:
    """The verdict of a handler that returned.

    A result that cannot be stored does not undo the work: the job is completed without it, and the reason says so.

    Args:
        claim: the job that ran.
        value: what the handler returned; None stores nothing.
        run_microseconds: how long it ran.
        limit: the most bytes of JSON that a result may take.
    """
    result = reason = None
    if value is not None:
        try:
            result = encode_result(value, limit)
        except PgbrokerError as error:
            reason = sanitise_text(f"result not stored: {error}", REASON_LIMIT)
    return Verdict(
        claim.id, claim.lease_token, Outcome.COMPLETED, JobState.COMPLETED, 0.0, run_microseconds, result, None, reason
    )


def judge_error(
    claim: ClaimedJob,
    error: BaseException,
    run_microseconds: int,
    retry_policy: RetryPolicy,
    choose: Callable[[], float] = random.random,
) -> Verdict:
    """The verdict of a handler that raised.

    Args:
        claim: the job that ran.
        error: what it raised; a Directive is obeyed, everything else is a failure.
        run_microseconds: how long it ran.
        retry_policy: the delays of this job type.
        choose: draws the jitter, between 0 and 1.
    """
    base = Verdict(claim.id, claim.lease_token, Outcome.FAILED, JobState.DEAD, run_microseconds=run_microseconds)
    reason = _reason_of(error) if isinstance(error, Directive) else ""
    match error:
        case Snooze():
            return _wait(base._replace(outcome=Outcome.SNOOZED, reason=reason or None), _as_seconds(error.seconds))
        case Cancel():
            return base._replace(outcome=Outcome.CANCELLED, next_state=JobState.CANCELLED, reason=reason or None)
    failed = base._replace(error=record_error(error))
    if claim.attempt >= claim.max_attempts:
        return failed._replace(reason=reason or "attempts spent")
    wish = error.after_seconds if isinstance(error, Retry) else None
    seconds = retry_policy.delay_seconds(claim.attempt, choose) if wish is None else wish
    return _wait(failed._replace(reason=reason or None), _as_seconds(seconds))


def judge_stop(
    claim: ClaimedJob,
    stop: Stop,
    run_microseconds: int,
    retry_policy: RetryPolicy,
    *,
    error: BaseException | None = None,
    most_interruptions: int | None = None,
    choose: Callable[[], float] = random.random,
) -> Verdict:
    """The verdict of a handler that ended, or was given up, because it was asked to.

    Args:
        claim: the job that ran.
        stop: why it had to end; a lost lease makes an interruption, which the fence refuses.
        run_microseconds: how long it ran.
        retry_policy: the delays of this job type, for a time-out.
        error: what it raised, if that is worth keeping.
        most_interruptions: as for ``interrupt``.
        choose: draws the jitter, between 0 and 1.
    """
    if stop.kind in (StopKind.DRAINING, StopKind.LOST):
        return interrupt(claim, stop.reason, most_interruptions)._replace(run_microseconds=run_microseconds)
    record = None if error is None else record_error(error)
    base = Verdict(
        claim.id, claim.lease_token, Outcome.CANCELLED, JobState.CANCELLED, 0.0, run_microseconds, None, record,
        sanitise_text(stop.reason, REASON_LIMIT),
    )  # fmt: skip
    if stop.kind is StopKind.CANCELLED:
        return base
    timed_out = base._replace(outcome=Outcome.TIMED_OUT)
    if claim.attempt >= claim.max_attempts:
        return timed_out._replace(next_state=JobState.DEAD)
    return _wait(timed_out, _as_seconds(retry_policy.delay_seconds(claim.attempt, choose)))


def judge_loss(job: LapsedJob, delay_seconds: float) -> Verdict:
    """The verdict of a claim whose lease lapsed: its worker died or stalled.

    An attempt is spent if the job had begun. If it still waited in its worker it is pending again, and from now on it
    is only claimed into a free slot, so that a job that kills its worker cannot hide among those that wait.
    """
    lost = Verdict(job.id, job.lease_token, Outcome.LOST, JobState.PENDING, reason="worker lost")
    if not job.has_begun:
        return lost._replace(reason=LOST_WAITING)
    if job.attempt >= job.max_attempts:
        return lost._replace(next_state=JobState.DEAD)
    return _wait(lost, delay_seconds)


def judge_overdue(job: OverdueJob, retry_policy: RetryPolicy, choose: Callable[[], float] = random.random) -> Verdict:
    """The verdict of a running job whose worker keeps its lease and does not stop it."""
    timed_out = Verdict(
        job.id, job.lease_token, Outcome.TIMED_OUT, JobState.DEAD,
        reason="its time-out had long passed, and its worker did not stop it",
    )  # fmt: skip
    if job.attempt >= job.max_attempts:
        return timed_out
    return _wait(timed_out, _as_seconds(retry_policy.delay_seconds(job.attempt, choose)))


def judge_child_death(
    claim: ClaimedJob,
    cause: str,
    run_microseconds: int,
    retry_policy: RetryPolicy,
    choose: Callable[[], float] = random.random,
) -> Verdict:
    """The verdict of a job whose child process died under it: the attempt is spent, as with a worker that dies.

    Args:
        claim: the job that ran.
        cause: how the child ended, as ``by signal 9 (SIGKILL)``.
        run_microseconds: how long it ran.
        retry_policy: the delays of this job type.
        choose: draws the jitter, between 0 and 1.
    """
    lost = Verdict(
        claim.id, claim.lease_token, Outcome.LOST, JobState.DEAD, 0.0, run_microseconds,
        reason=sanitise_text(f"its child process ended {cause}", REASON_LIMIT),
    )  # fmt: skip
    if claim.attempt >= claim.max_attempts:
        return lost
    return _wait(lost, _as_seconds(retry_policy.delay_seconds(claim.attempt, choose)))


def release(claim: ClaimedJob) -> Verdict:
    """The verdict of a claim that never began: back to the queue as if it had not been claimed."""
    return Verdict(claim.id, claim.lease_token, Outcome.RELEASED, JobState.PENDING)


def interrupt(claim: ClaimedJob, reason: str, most: int | None = None) -> Verdict:
    """The verdict of a running job whose worker must go: pending again, no attempt counted.

    Args:
        claim: the job that runs.
        reason: kept in the history.
        most: how often the job may be interrupted; once more, and it is a dead letter.
    """
    interrupted = Verdict(claim.id, claim.lease_token, Outcome.INTERRUPTED, JobState.PENDING, reason=reason)
    if most is None or claim.interruptions < most:
        return interrupted
    times = claim.interruptions + 1
    return interrupted._replace(next_state=JobState.DEAD, reason=f"interrupted {times} times, {most} allowed: {reason}")


def record_error(error: BaseException) -> ErrorRecord:
    """What is kept of an exception, whatever its text, class or traceback does."""
    return ErrorRecord(
        error_class=sanitise_text(f"{type(error).__module__}.{type(error).__qualname__}", 200),
        message=sanitise_text(_text_of(error), MESSAGE_LIMIT),
        traceback=sanitise_text(_traceback_of(error), TRACEBACK_LIMIT),
        fingerprint=fingerprint_error(error),
    )


def _wait(verdict: Verdict, seconds: float) -> Verdict:
    return verdict._replace(next_state=JobState.SCHEDULED if seconds > 0 else JobState.PENDING, delay_seconds=seconds)


#: A year: no back-off is longer, and no date overflows.
_LONGEST_WAIT_SECONDS = 366 * 86_400.0


def _as_seconds(value: object) -> float:
    """A delay that the database can add to a date, whatever a handler gave."""
    try:
        seconds = float(value.total_seconds() if isinstance(value, timedelta) else value)  # type: ignore[arg-type]
    except OverflowError:
        return _LONGEST_WAIT_SECONDS
    except (TypeError, ValueError):
        return 0.0
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), _LONGEST_WAIT_SECONDS)


def _reason_of(directive: Directive) -> str:
    """What a handler gave as the reason, often the exception that it caught."""
    reason = getattr(directive, "reason", None)
    return "" if reason is None else sanitise_text(_text_of(reason), REASON_LIMIT)


def _text_of(error: object) -> str:
    try:
        return str(error)
    except BaseException as raised:
        return f"<the text of this error raised {type(raised).__name__}>"


def _traceback_of(error: BaseException) -> str:
    try:
        return "".join(format_exception(error))
    except BaseException as raised:
        return f"<the traceback of this error raised {type(raised).__name__}>"
