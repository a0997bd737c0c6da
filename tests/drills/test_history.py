"""The checker of the drills finds every kind of fault where there is one, and nothing where there is none."""

from types import SimpleNamespace

import pytest
from django.db import connection

from django_pgbroker.store.acknowledge import acknowledge_jobs
from tests.drills.crew import TABLES
from tests.drills.history import FAULTS, find_faults, find_silent_refusals
from tests.maintenance.connections import gateway, rows
from tests.store.jobs import Shop, completed

__all__ = ["gateway", "rows"]

EXECUTION = """
insert into pgbroker.execution (
    job_id, lease_token, tenant_id, queue_id, job_type_id, leased_at, finished_at, attempt, outcome
)
select {id}, {token}, 1, 1, 1, now() - interval '1 min', {finished_at}, 1, {outcome}
"""
ARCHIVED = """
insert into pgbroker.archived_job
select (jsonb_populate_record(old, '{changes}')).* from pgbroker.archived_job as old where id = {id}
"""
LIVE = """
insert into pgbroker.job (id, tenant_id, queue_id, job_type_id, created_at, available_at, claim_order, state)
overriding system value values ({id}, 1, 1, 1, now(), now(), now(), 0)
"""

#: How to spoil the history of a completed job, for each fault that must then be found.
SPOILS = {
    "is not in exactly one place": "delete from pgbroker.archived_job",
    "is archived twice": ARCHIVED.replace("{changes}", '{{"finished_at": "2020-01-01"}}'),
    "is live and archived": LIVE,
    "is live without a payload": LIVE,
    "has left a payload behind": "insert into pgbroker.job_payload (job_id, arguments) values ({id}, '{{}}')",
    "completed twice": EXECUTION.format(id="{id}", token="{token} + 1", finished_at="now()", outcome=1),
    "is completed without an execution that says so": "delete from pgbroker.execution",
    "has an execution that completed and is not completed": "update pgbroker.archived_job set state = 11",
    "has a claim that was recorded twice": EXECUTION.format(id="{id}", token="{token}", finished_at="now()", outcome=2),
    "ran again after an end": EXECUTION.format(id="{id}", token="{token} + 1", finished_at="now()", outcome=2),
    "was claimed before its last claim had ended": EXECUTION.format(
        id="{id}", token="{token} - 1", finished_at="now() + interval '1 min'", outcome=2
    ),
    "was called lost before its lease was over": EXECUTION.format(
        id="{id}", token="{token} - 1", finished_at="now() - interval '59 s'", outcome=6
    ),
    "ran under a token that no execution knows": "update effect set lease_token = lease_token + 1",
    "completed without its last effect": "delete from effect where what = 'done'",
    "counts attempts, deaths or interruptions that its executions do not show": (
        "update pgbroker.archived_job set attempt = attempt + 1"
    ),
    "is of an outcome that the counters of the minutes do not agree with": (
        "update pgbroker.stat_minute set jobs = jobs + 1"
    ),
}


@pytest.fixture
def done(gateway, rows):
    """A job that was claimed, told its effects and was completed."""
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
    shop = Shop(rows)
    claim = shop.claim_one(gateway)
    for what in ("begun", "done"):
        rows.run(
            "insert into effect (job_id, lease_token, process_id, what) values (%s, %s, 1, %s)",
            claim.id, claim.lease_token, what,
        )  # fmt: skip
    acknowledge_jobs(gateway, [completed(claim)])
    yield claim
    with connection.cursor() as cursor:
        cursor.execute("drop table effect, gate")


def test_a_clean_history_has_no_fault(done, rows):
    assert find_faults(rows.gateway.connection, [done.id]) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_found(done, rows, fault):
    rows.run(SPOILS[fault].format(id=done.id, token=done.lease_token))

    found = find_faults(rows.gateway.connection, [done.id])

    assert any(f" {fault} (" in sentence for sentence in found), found


@pytest.mark.parametrize("logged", [True, False])
def test_a_refused_verdict_must_stand_in_the_log_of_its_worker(done, rows, logged):
    rows.run("update pgbroker.execution set outcome = 6")
    line = f"WARNING lease.lost: the verdict completed was refused (job={done.id} token={done.lease_token})"
    worker = SimpleNamespace(pid=1, output=line if logged else "")

    assert len(find_silent_refusals(rows.gateway.connection, [worker])) == (0 if logged else 1)
