"""Make the pools that a worker needs: one of each kind that some of its job types run in. Called at its start."""

from collections.abc import Callable

from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.verdicts import release
from django_pgbroker.worker.async_executor import AsyncExecutor
from django_pgbroker.worker.children_brief import write_brief
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.interruption import Region
from django_pgbroker.worker.link import JobLink
from django_pgbroker.worker.options import WorkerOptions
from django_pgbroker.worker.pools.children import ChildPool
from django_pgbroker.worker.pools.event_loop import EventLoopPool
from django_pgbroker.worker.pools.pool import Pool
from django_pgbroker.worker.pools.pools import Pools
from django_pgbroker.worker.pools.threads import ThreadPool
from django_pgbroker.worker.session import Session


def make_pools(
    session: Session,
    options: WorkerOptions,
    *,
    executor: AsyncExecutor,
    heartbeats: HandlerHeartbeats,
    link: JobLink,
    may_begin: Callable[[ClaimedJob], bool],
    deliver: Callable[[Verdict], None],
) -> Pools:
    """The pools for the lanes of a session, not started yet.

    Args:
        session: of the worker.
        options: of the worker.
        executor: runs claims in threads and on the loop.
        heartbeats: of handlers that must show progress.
        link: what a job in a child process asks of its worker comes here in the end.
        may_begin: asked of each claim right before it begins; where it says no, the claim is released.
        deliver: takes the verdicts, in any thread.

    Raises:
        ConfigurationError: child processes are needed and cannot be made.
    """

    def execute(claim: ClaimedJob, region: Region) -> Verdict:
        return executor.execute(claim, region) if may_begin(claim) else release(claim)

    async def execute_async(claim: ClaimedJob) -> Verdict:
        return await executor.execute_async(claim) if may_begin(claim) else release(claim)

    def make_pool(kind: ExecutorKind) -> Pool:
        capacity, settings = options.capacity_of(kind), options.settings
        match kind:
            case ExecutorKind.ASYNC:
                return EventLoopPool(capacity, settings.async_database_threads, execute_async, deliver)
            case ExecutorKind.PROCESS:
                return ChildPool(
                    capacity,
                    write_brief(session.directory, settings),
                    session.directory,
                    heartbeats,
                    link=link,
                    may_begin=may_begin,
                    now=session.clock.now,
                    deliver=deliver,
                )
        return ThreadPool(capacity, execute, deliver)

    return Pools({kind: make_pool(kind) for kind in dict.fromkeys(lane.kind for lane in session.lanes)})
