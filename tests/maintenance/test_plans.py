"""Every statement of a duty uses its index and reads little, whatever the statistics say."""

import pytest

from django_pgbroker.store.statement import statement
from tests.maintenance import plans

JOBS_A_STATE = 10_000
BATCH = 100

#: The statements, their parameters, and how many rows of ``job`` they may read.
STATEMENTS = {
    "expire_jobs": ({"batch": BATCH}, 4 * BATCH),
    "find_due_queues": ({}, 20),
    "mark_lost_workers": ({"batch": BATCH}, 0),
    "park_unknown_jobs": ({"batch": BATCH, "head": 200}, 3 * 200 + 4 * BATCH),
    "prune_stats": ({"batch": BATCH}, 0),
    "prune_workers": ({"batch": BATCH}, 0),
    "sample_queues": ({"batch": BATCH, "bound": 300, "head": 50, "max_age_seconds": 0.0}, 3 * (300 + 300 + 50) + 900),
    "wake_known_jobs": ({"batch": BATCH}, 4 * BATCH),
}


def never_analysed(rows):
    plans.fill(rows, JOBS_A_STATE)


def analysed_while_empty(rows):
    plans.analyse(rows)
    plans.fill(rows, JOBS_A_STATE)


def analysed_while_all_ran(rows):
    plans.fill(rows, JOBS_A_STATE // 10)
    plans.run_all(rows)
    plans.analyse(rows)
    plans.fill(rows, JOBS_A_STATE)


def drained_and_filled_again(rows):
    plans.fill(rows, JOBS_A_STATE)
    plans.drain(rows)
    plans.fill(rows, JOBS_A_STATE)


def many(rows):
    plans.fill(rows, 4 * JOBS_A_STATE)
    plans.analyse(rows)


@pytest.fixture
def seeded(rows, request):
    plans.forget_statistics(rows)
    request.param(rows)
    yield
    plans.restore_autovacuum(rows)


@pytest.mark.parametrize(
    "seeded",
    [never_analysed, analysed_while_empty, analysed_while_all_ran, drained_and_filled_again, many],
    indirect=True,
    ids=lambda state: state.__name__,
)
def test_the_statements_of_the_duties_use_their_index_in_every_state_of_the_tables(gateway, seeded):
    for name, (params, readable) in STATEMENTS.items():
        for cache_mode in ("force_custom_plan", "force_generic_plan"):
            plan = plans.plan_of(gateway, name, params, cache_mode)
            case = f"{name} {cache_mode}: {plan}"
            wanted = {index.strip() for index in statement(name).header["index"].split(",")}
            assert wanted <= plan.indexes, case
            assert not plan.scanned & {"job", "job_payload", "stat_minute"}, case
            assert plan.rows_read.get("job", 0) <= readable, case
            assert plan.rows_read.get("stat_minute", 0) <= 4 * BATCH, case


def test_a_statement_without_its_index_is_found_out(gateway, rows):
    plans.fill(rows, 1000)
    with gateway.transaction():
        gateway.connection.execute("set local enable_seqscan = on")
        gateway.connection.execute("drop index pgbroker.job_expiring")
        plan = plans.plan_of(gateway, "expire_jobs", {"batch": 10}, "force_custom_plan")
        gateway.connection.execute("rollback")
    assert "job_expiring" not in plan.indexes
    assert plan.rows_read["job"] > 400
