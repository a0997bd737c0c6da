"""Run one claimed job and judge how it ended. Called in the slots; whatever a handler raises, a verdict comes out."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from time import perf_counter
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from asgiref.sync import async_to_sync

from django_pgbroker import telemetry
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verdicts import Directive, judge_error, judge_result
from django_pgbroker.registry import JobType
from django_pgbroker.worker.context import JobContext, make_context, running_job
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.hygiene import OpenTransaction, drop_dead_connections, settle_connections


class PayloadMissing(Exception):
    """The job has no payload row: somebody deleted it by hand."""


class NothingRan(Exception):
    """The handler returned something that would still have to be awaited or iterated: it has done nothing yet."""


_UNRUN = (CoroutineType, GeneratorType, AsyncGeneratorType)


@dataclass
class Directory:
    """Ids to what they stand for, as this worker's database knows them."""

    job_types: Mapping[int, JobType]
    queues: Mapping[int, str]
    tenants: dict[int, str]


class Executor:
    """Runs claimed jobs, each in the thread of the slot that calls it.

    Args:
        directory: what the ids in a claim stand for.
        result_limit_bytes: the most JSON that a result may take.
        is_stopping: whether the claim with this lease token should end soon.
        heartbeats: of handlers that must show progress.
    """

    def __init__(
        self,
        directory: Directory,
        result_limit_bytes: int,
        is_stopping: Callable[[int], bool],
        heartbeats: HandlerHeartbeats,
    ) -> None:
        self._directory = directory
        self._heartbeats = heartbeats
        self._result_limit = result_limit_bytes
        self._is_stopping = is_stopping

    def execute(self, claim: ClaimedJob) -> Verdict:
        """Run the handler of ``claim`` and return its verdict. Never raises."""
        started = perf_counter()
        job_type = self._directory.job_types[claim.job_type_id]
        if job_type.heartbeat_timeout_seconds is None:
            return self._run(job_type, claim, started)
        self._heartbeats.begin(claim, job_type.heartbeat_timeout_seconds)
        try:
            return self._run(job_type, claim, started)
        finally:
            self._heartbeats.end(claim.lease_token)

    def _run(self, job_type: JobType, claim: ClaimedJob, started: float) -> Verdict:
        try:
            drop_dead_connections()
            value = copy_context().run(self._call, job_type, claim)
            if aliases := settle_connections():
                raise OpenTransaction(
                    f"the handler returned with an open transaction on {', '.join(aliases)}; it was rolled back. "
                    "Use transaction.atomic(), or commit"
                )
            if not job_type.store_result:
                value = None
            verdict = judge_result(claim, value, _microseconds_since(started), self._result_limit)
            if verdict.reason:
                telemetry.warning("result.not_stored", verdict.reason, job=claim.id, job_type=job_type.name)
            return verdict
        except BaseException as error:
            return self._judge(job_type, claim, error, _microseconds_since(started))

    def _call(self, job_type: JobType, claim: ClaimedJob) -> Any:
        """Runs in a context of its own: what a handler activates or sets does not reach the next job."""
        if claim.arguments is None:
            raise PayloadMissing(f"job {claim.id} has no row in pgbroker.job_payload")
        arguments = json.loads(claim.arguments)

        def get_context() -> JobContext:
            return self._context_of(job_type, claim)

        if job_type.takes_context:
            arguments["ctx"] = get_context()
        running_job.set(get_context)
        handler = async_to_sync(job_type.handler) if job_type.is_async else job_type.handler
        value = handler(**arguments)
        if isinstance(value, _UNRUN):
            if isinstance(value, CoroutineType):
                value.close()
            raise NothingRan(
                f"the handler returned a {type(value).__name__}, whose body has not run: declare it async def, "
                "or run it inside and return what comes of it"
            )
        return value

    def _context_of(self, job_type: JobType, claim: ClaimedJob) -> JobContext:
        queue, tenant = self._directory.queues[claim.queue_id], self._directory.tenants[claim.tenant_id]
        return make_context(
            claim, job_type.name, queue, tenant, is_stopping=self._is_stopping, beat=self._heartbeats.beat
        )

    def _judge(self, job_type: JobType, claim: ClaimedJob, error: BaseException, run_microseconds: int) -> Verdict:
        try:
            settle_connections()
            verdict = judge_error(claim, error, run_microseconds, job_type.retry_policy)
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
        with suppress(Exception):  # a handler or filter of logging may raise, and the slot must live
            _tell(job_type, claim, verdict, error)
        return verdict


def _tell(job_type: JobType, claim: ClaimedJob, verdict: Verdict, error: BaseException) -> None:
    fields = {"job": claim.id, "job_type": job_type.name, "attempt": claim.attempt, "token": claim.lease_token}
    if isinstance(error, Directive):
        telemetry.info(f"job.{verdict.outcome.label}", verdict.reason or "as the handler asked", **fields)
    elif verdict.next_state is JobState.DEAD:
        telemetry.error("job.dead", f"{type(error).__name__}: no attempt is left", exc_info=error, **fields)
    else:
        telemetry.warning(
            "job.failed", f"{type(error).__name__}: again in {verdict.delay_seconds:.1f} s", exc_info=error, **fields
        )


def _microseconds_since(started: float) -> int:
    return int((perf_counter() - started) * 1_000_000)
