"""The broker of a random history: real statements, real connections, and a clock that stands still until it is set."""

from dataclasses import replace
from typing import Any

from django.db import connection

from django_pgbroker.conf import get_settings
from django_pgbroker.registry import JobType
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.runtime.database_clock import DatabaseClock
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.worker.executor import Directory
from django_pgbroker.worker.options import QueueShare, WorkerOptions
from django_pgbroker.worker.session import Session
from tests.histories.model import SECOND, ArchivedRow, ExecutionRow, LiveRow
from tests.maintenance.rows import Rows

QUEUES = {"fast": 10, "slow": 60}
JOB_TYPES = ("shop.pack", "shop.send")
WORKERS = 3
LEASE_SECONDS = 30.0
NOON = 1_900_000_000 * SECOND

_CLOCK = """
create table if not exists history_clock (at timestamptz not null);
create or replace function pgbroker.clock() returns timestamptz language sql stable parallel safe
    as $$ select at from public.history_clock $$
"""
_EMPTY = """
delete from pgbroker.job; delete from pgbroker.job_payload; delete from pgbroker.archived_job;
delete from pgbroker.execution; delete from pgbroker.stat_minute; delete from pgbroker.audit_entry;
update pgbroker.queue set paused_at = null, paused_by = null, pause_reason = null
"""
_LIVE = """
select id, queue_id, job_type_id, state, priority, attempt, max_attempts, deaths, interruptions,
    (extract(epoch from available_at) * 1000000)::bigint, (extract(epoch from claim_order) * 1000000)::bigint,
    (extract(epoch from nullif(expires_at, 'infinity')) * 1000000)::bigint, lease_token,
    (extract(epoch from lease_expires_at) * 1000000)::bigint, worker_id, lapses, started_at is not null
from pgbroker.job order by id
"""
_ARCHIVED = """
select id, state, attempt, deaths, interruptions, (extract(epoch from finished_at) * 1000000)::bigint, reason,
    result::text, error_class
from pgbroker.archived_job order by id
"""
_EXECUTIONS = """
select job_id, lease_token, worker_id, outcome, attempt, (extract(epoch from leased_at) * 1000000)::bigint,
    (extract(epoch from finished_at) * 1000000)::bigint
from pgbroker.execution order by job_id, lease_token, worker_id, outcome
"""
_PAYLOADS = "select job_id from pgbroker.job_payload order by job_id"
_COUNTED = "select outcome, sum(jobs)::bigint from pgbroker.stat_minute group by outcome order by outcome"


def pack(**arguments: object) -> None:
    """The handler behind the jobs; nothing here runs it."""


class Snapshot:
    """All rows that the model also knows, in its words."""

    def __init__(self, gateway: Gateway) -> None:
        raw = gateway.connection
        with raw.pipeline():
            cursors = [raw.execute(text) for text in (_LIVE, _ARCHIVED, _EXECUTIONS, _PAYLOADS, _COUNTED)]
        live, archived, executions, payloads, counted = (cursor.fetchall() for cursor in cursors)
        self.live = [LiveRow(*row) for row in live]
        self.archived = [ArchivedRow(*row) for row in archived]
        self.executions = [ExecutionRow(*row) for row in executions]
        self.payloads = [job_id for (job_id,) in payloads]
        self.counted = dict(counted)


class BrokerOfHistories:
    """Queues, job types and workers that outlive all histories of one test; the jobs are emptied for each."""

    def __init__(self) -> None:
        # A history is no test of what survives a power cut: its commits need not wait for the disk.
        with connection.cursor() as cursor:
            cursor.execute("set synchronous_commit = off")
            cursor.execute(_CLOCK)
            cursor.execute("insert into history_clock values (now())")
        self.gateway = open_gateway("default", "history", synchronous_commit="off")
        rows = Rows(self.gateway)
        self.queues = {name: rows.queue(name) for name in QUEUES}
        self.job_types = {name: rows.job_type(name) for name in JOB_TYPES}
        for name, seconds in QUEUES.items():
            rows.run("update pgbroker.queue set ageing_seconds = %s where name = %s", seconds, name)
        self.sessions = [self._session(rows) for _ in range(WORKERS)]
        self._rows = rows

    def _session(self, rows: Rows) -> Session:
        names = tuple(QueueShare(name) for name in QUEUES)
        types = {type_id: JobType(name, pack) for name, type_id in self.job_types.items()}
        gateway = open_gateway("default", "history worker", synchronous_commit="off")
        options = WorkerOptions(names, settings=replace(get_settings(), lease_seconds=LEASE_SECONDS))
        return Session(options, gateway, rows.worker(), Directory(types, {}, {}), [], DatabaseClock())

    def empty(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_EMPTY)

    def set_clock(self, microseconds: int) -> None:
        self._rows.run(
            "update history_clock set at = timestamptz 'epoch' + %s::bigint * interval '1 microsecond'", microseconds
        )

    def read(self) -> Snapshot:
        return Snapshot(self.gateway)

    def read_start(self, job_id: int) -> Any:
        """When a live job is available."""
        return self._rows.one(
            "select (extract(epoch from available_at) * 1000000)::bigint from pgbroker.job where id = %s", job_id
        )

    def close(self) -> None:
        for gateway in (self.gateway, *(session.gateway for session in self.sessions)):
            gateway.connection.close()
        with connection.cursor() as cursor:
            cursor.execute(
                "create or replace function pgbroker.clock() returns timestamptz language sql stable parallel safe"
                " as $$ select statement_timestamp() $$; drop table history_clock; reset synchronous_commit"
            )
