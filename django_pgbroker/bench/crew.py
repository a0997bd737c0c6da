"""Start worker processes on the scratch database, see that they are ready, and end them. Used by the measurements."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from django_pgbroker.bench.errors import BenchError
from django_pgbroker.bench.interrupts import interrupts_held_back, no_interrupts
from django_pgbroker.bench.worker_process import Assignment, run_worker
from django_pgbroker.domain.states import Outcome
from django_pgbroker.store.gateway import Gateway

#: What a process needs to start, and what each further one adds where processors are few.
_READY_SECONDS = 60.0
_READY_SECONDS_EACH = 3.0

_STOP_SECONDS = 10.0
_PROGRESS_SECONDS = 5.0

#: When nothing is completed for so long, nothing will be.
_STALL_SECONDS = 60.0

_SESSIONS = """
select count(*) from pg_stat_activity
where datname = current_database() and application_name like any (%s)
"""

_WORKERS = "select count(*) from pgbroker.worker where stopped_at is null and process_id = any (%s)"

_COUNTS = """
select coalesce(sum(jobs) filter (where outcome = %(completed)s), 0)::bigint,
    coalesce(sum(jobs) filter (where outcome <> %(completed)s), 0)::bigint
from pgbroker.stat_minute
"""

_ROOM = """
select current_setting('max_connections')::int - (select count(*) from pg_stat_activity)::int
    - current_setting('superuser_reserved_connections')::int
"""


@dataclass(frozen=True)
class Member:
    """One worker process and the pipe it tells through."""

    process: BaseProcess
    pipe: Connection

    @property
    def process_id(self) -> int:
        """Of the running process."""
        assert self.process.pid is not None
        return self.process.pid

    def check(self) -> None:
        """See that it lives.

        Raises:
            BenchError: it does not.
        """
        if not self.process.is_alive():
            raise BenchError(
                f"a worker process ended by itself (exit status {self.process.exitcode}); what it said is above"
            )


@contextmanager
def start_crew(gateway: Gateway, assignment: Assignment, processes: int = 1) -> Iterator[list[Member]]:
    """Worker processes that are connected and idle or at work; stopped at the end of the block, killed if they linger.

    Args:
        gateway: of the scratch database.
        assignment: the same for all.
        processes: how many.

    Raises:
        BenchError: the server has too few connections, or a process does not come up.
    """
    _require_room(gateway, assignment, processes)
    members: list[Member] = []
    try:
        for _ in range(processes):
            with interrupts_held_back():
                members.append(_start(assignment))
        _wait_until_ready(gateway, assignment, members)
        yield members
    finally:
        with no_interrupts():
            _stop(members)


def wait_until_completed(
    gateway: Gateway, jobs: int, members: list[Member], tell: Callable[[int], None] = lambda _: None
) -> None:
    """Return when so many jobs are completed.

    Args:
        gateway: of the scratch database, whose counters were empty before.
        jobs: how many.
        members: who works.
        tell: given the number of completed jobs every five seconds.

    Raises:
        BenchError: a worker process ended, a job failed, or nothing was completed for a minute.
    """
    done, moved_at, told_at = 0, time.monotonic(), time.monotonic()
    while (now_done := count_completed(gateway)) < jobs:
        now = time.monotonic()
        if now_done > done:
            done, moved_at = now_done, now
        if now - moved_at > _STALL_SECONDS:
            raise BenchError(f"{jobs - done:,} of {jobs:,} jobs are left, and none was completed for a minute")
        for member in members:
            member.check()
        if now - told_at > _PROGRESS_SECONDS:
            told_at = now
            tell(done)
        time.sleep(0.05)


def count_completed(gateway: Gateway) -> int:
    """How many jobs are completed, by the counters: they are few, and written with each acknowledge.

    Raises:
        BenchError: there are executions that ended in another way.
    """
    [(completed, others)] = gateway.connection.execute(_COUNTS, {"completed": int(Outcome.COMPLETED)}).fetchall()
    if others:
        raise BenchError(f"{others} executions failed or were lost; the figures would be worth nothing")
    return int(completed)


def _start(assignment: Assignment) -> Member:
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run_worker, args=(assignment, theirs), daemon=True)
    process.start()
    theirs.close()
    return Member(process, ours)


def _require_room(gateway: Gateway, assignment: Assignment, processes: int) -> None:
    """Turns, heartbeat and listener, the duties, and Django's own connections of the slots."""
    each = 2 + assignment.listens + assignment.has_duties
    each += assignment.concurrency if assignment.handler in ("orm", "atomic") else 0
    [(room,)] = gateway.connection.execute(_ROOM, prepare=False).fetchall()
    if processes * each > room:
        raise BenchError(
            f"{processes} worker processes need {processes * each} connections, and the server has {room} left; "
            "take fewer, or raise its max_connections"
        )


def _wait_until_ready(gateway: Gateway, assignment: Assignment, members: list[Member]) -> None:
    deadline = time.monotonic() + _READY_SECONDS + _READY_SECONDS_EACH * len(members)
    while not _are_ready(gateway, assignment, members):
        for member in members:
            member.check()
        if time.monotonic() > deadline:
            raise BenchError(f"not all of {len(members)} worker processes came up; the machine is too busy")
        time.sleep(0.05)


def _are_ready(gateway: Gateway, assignment: Assignment, members: list[Member]) -> bool:
    """A listener looks for work once it listens: whatever becomes visible after its connection is found at once."""
    process_ids = [member.process_id for member in members]
    [(workers,)] = gateway.connection.execute(_WORKERS, [process_ids]).fetchall()
    roles = [f"pgbroker {role} %" for role in ("heartbeat", *(["listener"] if assignment.listens else []))]
    [(sessions,)] = gateway.connection.execute(_SESSIONS, [roles]).fetchall()
    return bool(workers == len(members) and sessions >= len(members) * len(roles))


def _stop(members: list[Member]) -> None:
    for member in members:
        member.process.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    for member in members:
        # a worker that has something to tell must not wait for us
        while member.process.is_alive() and time.monotonic() < deadline:
            empty_pipe(member.pipe)
            member.process.join(0.02)
        member.process.kill()
        member.process.join()
        member.pipe.close()
        member.process.close()


def empty_pipe(pipe: Connection) -> list[float]:
    """What a process has told since the last look."""
    told = []
    try:
        while pipe.poll():
            told.append(pipe.recv())
    except EOFError:
        pass
    return told
