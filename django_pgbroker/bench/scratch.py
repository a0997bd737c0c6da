"""A migrated database that exists only while a bench runs, on the server of the project."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from django.conf import settings
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test.utils import override_settings

from django_pgbroker.bench.errors import BenchError
from django_pgbroker.bench.handlers import ARGUMENTS, do_nothing
from django_pgbroker.bench.interrupts import no_interrupts
from django_pgbroker.registry import JobType, registry
from django_pgbroker.runtime.announcer import close_announcer
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.runtime.new_names import declare_names
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.identifiers import find_job_type_ids, find_queue_ids

QUEUE = "bench"
SMALL_QUEUE = "bench_small"
JOB_TYPE = "pgbroker_bench.job"

#: Jobs of one insert: a statement of a second, between two lines of progress.
CHUNK = 100_000

_CLOSE_SECONDS = 5.0

_SEED = """
with given as materialized (
    select nextval('pgbroker.job_id_seq') as id, number from generate_series(1, %(jobs)s::bigint) as number
),
payload as (
    insert into pgbroker.job_payload (job_id, arguments) select id, %(arguments)s::jsonb from given
)
insert into pgbroker.job (id, tenant_id, queue_id, job_type_id, created_at, available_at, claim_order, state)
overriding system value
select id, (select id from pgbroker.tenant where name = 'default'), %(queue_id)s::bigint, %(job_type_id)s::bigint,
    pgbroker.clock(), pgbroker.clock(), pgbroker.clock() + number * interval '1 microsecond', 0
from given
"""

_EMPTY = (
    "truncate pgbroker.job, pgbroker.job_payload, pgbroker.archived_job, pgbroker.execution, pgbroker.stat_minute",
    "vacuum (analyze) pgbroker.job, pgbroker.job_payload",
)

_MAY_CHECKPOINT = "select pg_has_role('pg_checkpoint', 'member')"

_DISMISS = """
select pg_terminate_backend(pid, 5000) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
    and usename = current_user
"""


def settings_for_bench(**changes: Any) -> override_settings:
    """The project's settings, but for its names of queues, which the bench has its own of, and with notifications.

    ``DEBUG`` is off: Django would keep the text of every statement.

    Args:
        changes: further keys of ``settings.PGBROKER``.
    """
    given = {key: value for key, value in getattr(settings, "PGBROKER", {}).items() if key not in ("QUEUES", "ROUTES")}
    return override_settings(DEBUG=False, PGBROKER={**given, "LISTEN": True, **changes})


@contextmanager
def scratch_database(alias: str) -> Iterator[Gateway]:
    """Point ``alias`` at a new, migrated database, give a connection to it, and drop it in the end.

    Raises:
        BenchError: the role may not create databases.
        django.db.Error: the server is away.
    """
    if not registry.knows(JOB_TYPE):
        registry.register(JobType(name=JOB_TYPE, handler=do_nothing, queue=QUEUE))
    with settings_for_bench(), _another_database(alias):
        declare_names(alias, [QUEUE, SMALL_QUEUE])
        gateway = open_bench_gateway(alias)
        try:
            yield gateway
        finally:
            gateway.connection.close()


@contextmanager
def _another_database(alias: str) -> Iterator[None]:
    wrapper = connections[alias]
    name, test_settings = wrapper.settings_dict["NAME"], wrapper.settings_dict["TEST"]
    scratch_name = f"pgbroker_bench_{os.getpid()}"
    wrapper.settings_dict["TEST"] = {**test_settings, "NAME": scratch_name}
    try:
        _create(wrapper)
        yield
    finally:
        with no_interrupts():
            close_announcer(_CLOSE_SECONDS)
            is_sure_to_exist = wrapper.settings_dict["NAME"] == scratch_name
            with nullcontext() if is_sure_to_exist else suppress(Error):
                _drop(wrapper, scratch_name, name)
            wrapper.settings_dict.update(NAME=name, TEST=test_settings)


def _create(wrapper: BaseDatabaseWrapper) -> None:
    try:
        wrapper.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    except SystemExit:
        # Django's way out of a failed CREATE DATABASE, for test runners
        raise BenchError("the bench makes a database of its own; give its role CREATEDB (the error is above)") from None


def _drop(wrapper: BaseDatabaseWrapper, scratch_name: str, name: str) -> None:
    wrapper.close()
    wrapper.settings_dict["NAME"] = scratch_name
    with wrapper.cursor() as cursor:
        cursor.execute(_DISMISS)
    wrapper.creation.destroy_test_db(name, verbosity=0)


def empty_tables(gateway: Gateway) -> None:
    """Forget all jobs and all history, and let nothing of it wait for the disk where the role may say so."""
    for command in _EMPTY:
        gateway.connection.execute(command, prepare=False)
    if gateway.connection.execute(_MAY_CHECKPOINT, prepare=False).fetchall() == [(True,)]:
        gateway.connection.execute("checkpoint", prepare=False)


def add_jobs(gateway: Gateway, jobs: int, queue: str = QUEUE, tell: Callable[[str], None] = lambda _: None) -> None:
    """Make pending jobs, in chunks.

    Args:
        gateway: of the scratch database.
        jobs: how many.
        queue: where.
        tell: given a line after each million.
    """
    params = {
        "arguments": json.dumps(ARGUMENTS),
        "queue_id": find_queue_ids(gateway, [queue])[queue],
        "job_type_id": find_job_type_ids(gateway, [JOB_TYPE])[JOB_TYPE],
    }
    for done in range(0, jobs, CHUNK):
        gateway.connection.execute(_SEED, {**params, "jobs": min(CHUNK, jobs - done)}, prepare=False)
        if done and done % 1_000_000 == 0:
            tell(f"seeded {done:,} of {jobs:,} jobs")


def seed(gateway: Gateway, jobs: int, tell: Callable[[str], None] = lambda _: None) -> None:
    """Empty the tables and make pending jobs."""
    empty_tables(gateway)
    add_jobs(gateway, jobs, tell=tell)
    gateway.connection.execute("analyze pgbroker.job, pgbroker.job_payload", prepare=False)


def open_bench_gateway(alias: str) -> Gateway:
    """A connection as a worker has it, with time for long statements and for pauses within a transaction."""
    return open_gateway(
        alias, "bench", statement_timeout="0", lock_timeout="0", idle_in_transaction_session_timeout="0"
    )
