"""A migrated database that exists only while a bench runs, on the server of the project."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections

from django_pgbroker.registry import JobType, registry
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.runtime.new_names import declare_names
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.identifiers import find_job_type_ids, find_queue_ids

QUEUE = "bench"
JOB_TYPE = "pgbroker_bench.noop"

#: 150 bytes, as a job with an address and a few ids has.
ARGUMENTS = {"recipient": "somebody@example.org", "note": "x" * 100}

_SEED = """
with given as materialized (
    select nextval('pgbroker.job_id_seq') as id from generate_series(1, %(jobs)s::bigint)
),
payload as (
    insert into pgbroker.job_payload (job_id, arguments) select id, %(arguments)s::jsonb from given
)
insert into pgbroker.job (id, tenant_id, queue_id, job_type_id, created_at, available_at, claim_order, state)
overriding system value
select id, (select id from pgbroker.tenant where name = 'default'), %(queue_id)s::bigint, %(job_type_id)s::bigint,
    pgbroker.clock(), pgbroker.clock(), pgbroker.clock() + id * interval '1 microsecond', 0
from given
"""

_EMPTY = (
    "truncate pgbroker.job, pgbroker.job_payload, pgbroker.archived_job, pgbroker.execution, pgbroker.stat_minute",
    "vacuum (analyze) pgbroker.job, pgbroker.job_payload",
    "checkpoint",
)


def do_nothing(recipient: str, note: str) -> None:
    """The handler of the bench: all that is measured is the broker."""


@contextmanager
def scratch_database(alias: str) -> Iterator[None]:
    """Point ``alias`` at a new, migrated database, and drop it in the end.

    Raises:
        django.db.Error: the role may not create databases, or the server is away.
    """
    wrapper = connections[alias]
    if not registry.knows(JOB_TYPE):
        registry.register(JobType(name=JOB_TYPE, handler=do_nothing, queue=QUEUE))
    name = wrapper.settings_dict["NAME"]
    wrapper.settings_dict["TEST"] = {**wrapper.settings_dict["TEST"], "NAME": f"pgbroker_bench_{os.getpid()}"}
    wrapper.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        declare_names(alias, [QUEUE])
        yield
    finally:
        wrapper.creation.destroy_test_db(name, verbosity=0)


def seed(gateway: Gateway, jobs: int, arguments: str) -> None:
    """Empty the tables and make pending jobs."""
    for command in _EMPTY:
        gateway.connection.execute(command, prepare=False)
    gateway.connection.execute(
        _SEED,
        {
            "jobs": jobs,
            "arguments": arguments,
            "queue_id": find_queue_ids(gateway, [QUEUE])[QUEUE],
            "job_type_id": find_job_type_ids(gateway, [JOB_TYPE])[JOB_TYPE],
        },
        prepare=False,
    )
    gateway.connection.execute("analyze pgbroker.job, pgbroker.job_payload", prepare=False)


def open_bench_gateway(alias: str) -> Gateway:
    """A connection as a worker has it, with time for long statements."""
    return open_gateway(alias, "bench", statement_timeout="0", lock_timeout="0")
