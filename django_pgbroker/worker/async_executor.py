"""Run one claimed job as a coroutine and judge how it ended. Awaited by the event-loop pool, a task for each job."""

import os
from asyncio import CancelledError
from time import perf_counter

from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.stops import JobStopped
from django_pgbroker.registry import JobType
from django_pgbroker.worker.executor import Executor, microseconds_since, refuse_unrun
from django_pgbroker.worker.forks import end_fork
from django_pgbroker.worker.start_signal import atell_started


class AsyncExecutor(Executor):
    """Runs handlers that are coroutine functions; it judges as ``Executor`` does.

    Connections are no business of it: sync code runs in threads that keep theirs fit (``pools.sync_threads``).
    """

    async def execute_async(self, claim: ClaimedJob) -> Verdict:
        """Run the handler of ``claim`` in the context of the current task and return its verdict. Never raises."""
        started = perf_counter()
        job_type = self._directory.job_types[claim.job_type_id]
        if job_type.heartbeat_timeout_seconds is None:
            return await self._run_async(job_type, claim, started)
        self._heartbeats.begin(claim, job_type.heartbeat_timeout_seconds)
        try:
            return await self._run_async(job_type, claim, started)
        finally:
            self._heartbeats.end(claim.lease_token)

    async def _run_async(self, job_type: JobType, claim: ClaimedJob, started: float) -> Verdict:
        try:
            arguments, get_context = self._prepare(job_type, claim)
            await atell_started(job_type, get_context)
            process_id = os.getpid()
            try:
                if self._chain:
                    value = await self._chain.arun(job_type, get_context(), arguments)
                else:
                    value = await job_type.handler(**arguments)
            finally:
                end_fork(process_id)
            return self._judge_value(job_type, claim, started, refuse_unrun(value))
        except BaseException as error:
            return self._judge(job_type, claim, self._explain(claim, error), microseconds_since(started))

    def _explain(self, claim: ClaimedJob, error: BaseException) -> BaseException:
        """A task that ends as cancelled while its job should stop has stopped; any other one has failed."""
        if _is_end_of_tasks(error) and (stop := self._link.find_stop(claim.lease_token)):
            return JobStopped(stop).with_traceback(error.__traceback__)
        return error


def _is_end_of_tasks(error: BaseException) -> bool:
    """Whether nothing else was raised but what ends a task, in the handler or in a group of tasks of it."""
    if isinstance(error, BaseExceptionGroup):
        return error.split((CancelledError, JobStopped))[1] is None
    return isinstance(error, CancelledError)
