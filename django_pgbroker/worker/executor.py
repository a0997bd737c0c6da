"""Run one claimed job and judge how it ended. Called in the slots; whatever a handler raises, a verdict comes out."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from asgiref.sync import async_to_sync
from django.db import DEFAULT_DB_ALIAS

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.stops import JobStopped, Stop, StopKind
from django_pgbroker.domain.verdicts import Directive, judge_error, judge_result, judge_stop, record_error
from django_pgbroker.registry import JobType
from django_pgbroker.runtime.session_limits import find_exceeded, limit_sessions
from django_pgbroker.worker.atomic import run_atomic
from django_pgbroker.worker.context import JobContext, running_job
from django_pgbroker.worker.forks import end_fork
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.hygiene import (
    OpenTransaction,
    drop_dead_connections,
    settle_asyncio,
    settle_connections,
)
from django_pgbroker.worker.interruption import Region
from django_pgbroker.worker.link import JobLink
from django_pgbroker.worker.middleware import load_chain
from django_pgbroker.worker.start_signal import tell_started
from django_pgbroker.worker.steps import JobMemory


class PayloadMissing(Exception):
    """The job has no payload row: somebody deleted it by hand."""


class NothingRan(Exception):
    """The handler returned something that would still have to be awaited or iterated: it has done nothing yet."""


#: Stops that are carried out whatever the handler does; a drain only asks.
_FORCED = (StopKind.CANCELLED, StopKind.TIMED_OUT)

_UNRUN = (CoroutineType, GeneratorType, AsyncGeneratorType)


@dataclass
class Directory:
    """Ids to what they stand for, as this worker's database, under this alias, knows them."""

    job_types: Mapping[int, JobType]
    queues: Mapping[int, str]
    tenants: dict[int, str]
    database: str = DEFAULT_DB_ALIAS


class _ContextOnDemand:
    """Makes the context of a job when it is asked for the first time: most jobs never do."""

    __slots__ = ("_claim", "_context", "_job_type", "_make")

    def __init__(self, make: Callable[[JobType, ClaimedJob], JobContext], job_type: JobType, claim: ClaimedJob) -> None:
        self._make = make
        self._job_type = job_type
        self._claim = claim
        self._context: JobContext | None = None

    def __call__(self) -> JobContext:
        """The context, the same for everybody who asks."""
        if self._context is None:
            self._context = self._make(self._job_type, self._claim)
        return self._context


class Executor:
    """Runs claimed jobs, each in the thread of the slot that calls it.

    Args:
        directory: what the ids in a claim stand for.
        result_limit_bytes: the most JSON that a result may take.
        link: what a running job asks of its worker.
        heartbeats: of handlers that must show progress.
    """

    def __init__(
        self, directory: Directory, result_limit_bytes: int, link: JobLink, heartbeats: HandlerHeartbeats
    ) -> None:
        self._directory = directory
        self._result_limit = result_limit_bytes
        self._link = link
        self._heartbeats = heartbeats
        self._chain = load_chain()

    def execute(self, claim: ClaimedJob, region: Region) -> Verdict:
        """Run the handler of ``claim`` and return its verdict. Never raises.

        Args:
            claim: to run.
            region: of this thread; ``JobStopped`` may be thrown into it while the handler runs.
        """
        started = perf_counter()
        job_type = self._directory.job_types[claim.job_type_id]
        if job_type.heartbeat_timeout_seconds is None:
            return self._run(job_type, claim, region, started)
        self._heartbeats.begin(claim, job_type.heartbeat_timeout_seconds)
        try:
            return self._run(job_type, claim, region, started)
        finally:
            self._heartbeats.end(claim.lease_token)

    def _run(self, job_type: JobType, claim: ClaimedJob, region: Region, started: float) -> Verdict:
        try:
            drop_dead_connections()
            if job_type.is_atomic:
                return self._run_atomic(job_type, claim, region, started)
            try:
                region.enter()
                value = copy_context().run(self._call, job_type, claim)
            finally:
                region.leave()
            if aliases := settle_connections(closes_all=self._is_forced(claim)):
                raise OpenTransaction(
                    f"the handler returned with an open transaction on {', '.join(aliases)}; it was rolled back. "
                    "Use transaction.atomic(), or commit"
                )
            return self._judge_value(job_type, claim, started, value)
        except BaseException as error:
            return self._judge(job_type, claim, error, microseconds_since(started))

    def _run_atomic(self, job_type: JobType, claim: ClaimedJob, region: Region, started: float) -> Verdict:
        call = partial(self._call, job_type, claim)
        judge = partial(self._judge_value, job_type, claim, started)
        try:
            region.enter()
            verdict = copy_context().run(run_atomic, claim, self._directory.database, call, judge)
        finally:
            region.leave()
        if aliases := settle_connections(closes_all=self._is_forced(claim)):
            message = f"completed; a transaction was left open on {', '.join(aliases)} and is rolled back"
            telemetry.error("job.raised_after_commit", message, job=claim.id, token=claim.lease_token)
        return verdict

    def _judge_value(self, job_type: JobType, claim: ClaimedJob, started: float, value: Any) -> Verdict:
        if not job_type.store_result:
            value = None
        verdict = judge_result(claim, value, microseconds_since(started), self._result_limit)
        if verdict.reason:
            telemetry.warning("result.not_stored", verdict.reason, job=claim.id, job_type=job_type.name)
        return verdict

    def _call(self, job_type: JobType, claim: ClaimedJob) -> Any:
        """Runs in a context of its own: what a handler activates or sets does not reach the next job."""
        arguments, get_context = self._prepare(job_type, claim)
        settle_asyncio()
        tell_started(job_type, get_context)
        limits = job_type.session_limits
        with limit_sessions(limits) if limits else nullcontext():
            process_id = os.getpid()
            try:
                if self._chain:
                    return refuse_unrun(self._chain.run(job_type, get_context(), arguments))
                handler = async_to_sync(job_type.handler) if job_type.is_async else job_type.handler
                return refuse_unrun(handler(**arguments))
            finally:
                end_fork(process_id)

    def _prepare(self, job_type: JobType, claim: ClaimedJob) -> tuple[dict[str, Any], Callable[[], JobContext]]:
        """The arguments of the handler, and its context; the job is what runs here from now on."""
        if claim.arguments is None:
            raise PayloadMissing(f"job {claim.id} has no row in pgbroker.job_payload")
        arguments: dict[str, Any] = json.loads(claim.arguments)
        get_context = _ContextOnDemand(self._context_of, job_type, claim)
        if job_type.takes_context:
            arguments["ctx"] = get_context()
        running_job.set(get_context)
        return arguments, get_context

    def _context_of(self, job_type: JobType, claim: ClaimedJob) -> JobContext:
        queue, tenant = self._directory.queues[claim.queue_id], self._directory.tenants[claim.tenant_id]
        return JobContext(claim, job_type.name, queue, tenant, link=self._link, make_memory=self._make_memory)

    def _make_memory(self, claim: ClaimedJob) -> JobMemory:
        return JobMemory(claim.id, claim.lease_token, self._link, self._directory.database, self._result_limit)

    def _judge(self, job_type: JobType, claim: ClaimedJob, error: BaseException, run_microseconds: int) -> Verdict:
        try:
            settle_connections(closes_all=self._is_forced(claim))
            verdict = self._judge_raised(job_type, claim, error, run_microseconds)
        except BaseException as broken:
            error = broken
            verdict = Verdict(
                claim.id,
                claim.lease_token,
                Outcome.FAILED,
                JobState.DEAD if claim.attempt >= claim.max_attempts else JobState.SCHEDULED,
                delay_seconds=60.0,
                run_microseconds=run_microseconds,
                reason=f"the failure could not be judged: {type(broken).__name__}",
            )
            with suppress(BaseException):  # its traceback shows what the handler raised, too
                verdict = verdict._replace(error=record_error(broken))
        tell_verdict(job_type, claim, verdict, error)
        return verdict

    def _judge_raised(self, job_type: JobType, claim: ClaimedJob, error: BaseException, ran: int) -> Verdict:
        policy = job_type.retry_policy
        if isinstance(error, JobStopped):
            return judge_stop(claim, error.stop, ran, policy, most_interruptions=job_type.max_interruptions)
        stop = self._link.find_stop(claim.lease_token)
        if stop is not None and stop.kind in _FORCED:
            return judge_stop(claim, stop, ran, policy, error=error)
        if limit := find_exceeded(job_type.session_limits, error):
            exceeded = Stop(StopKind.TIMED_OUT, f"longer than its {limit} of {job_type.session_limits[limit]:g} s")
            return judge_stop(claim, exceeded, ran, policy, error=error)
        return judge_error(claim, error, ran, policy)

    def judge_abandoned(self, claim: ClaimedJob, stop: Stop, run_microseconds: int) -> Verdict:
        """The verdict of a handler that is given up: it was asked to end and did not."""
        job_type = self._directory.job_types[claim.job_type_id]
        given_up = stop._replace(reason=f"{stop.reason}; its handler did not end and was given up")
        verdict = judge_stop(claim, given_up, run_microseconds, job_type.retry_policy)
        tell_verdict(job_type, claim, verdict)
        return verdict

    def _is_forced(self, claim: ClaimedJob) -> bool:
        """Whether its session may be in any state, as the server was asked, or will be, to end a statement in it."""
        stop = self._link.find_stop(claim.lease_token)
        return stop is not None and stop.kind in _FORCED


def refuse_unrun(value: Any) -> Any:
    """What a handler returned.

    Raises:
        NothingRan: it would still have to be run.
    """
    if isinstance(value, _UNRUN):
        if isinstance(value, CoroutineType):
            value.close()
        raise NothingRan(
            f"the handler returned a {type(value).__name__}, whose body has not run: declare it async def, "
            "or run it inside and return what comes of it"
        )
    return value


def tell_verdict(job_type: JobType, claim: ClaimedJob, verdict: Verdict, error: BaseException | None = None) -> None:
    """Log how a handler ended that did not complete its job; never raises, whatever handlers of logging do.

    Args:
        job_type: of the job.
        claim: of the job.
        verdict: on it.
        error: what it raised, if that is worth a traceback.
    """
    fields = {"job": claim.id, "job_type": job_type.name, "attempt": claim.attempt, "token": claim.lease_token}
    is_asked = isinstance(error, Directive | JobStopped)
    words = verdict.reason if is_asked or error is None else type(error).__name__
    with suppress(Exception):
        if verdict.next_state is JobState.DEAD:
            telemetry.error("job.dead", f"{words}: no attempt is left", exc_info=None if is_asked else error, **fields)
        elif verdict.outcome is Outcome.TIMED_OUT:
            telemetry.warning("job.timed_out", f"{words}: again in {verdict.delay_seconds:.1f} s", **fields)
        elif is_asked or error is None:
            telemetry.info(f"job.{verdict.outcome.label}", words or "as the handler asked", **fields)
        else:
            again = f"{words}: again in {verdict.delay_seconds:.1f} s"
            telemetry.warning("job.failed", again, exc_info=error, **fields)


def microseconds_since(started: float) -> int:
    """How long ago ``perf_counter`` said this."""
    return int((perf_counter() - started) * 1_000_000)
