"""A batch of the re-ordering reads its rows by the primary key on a connection of the host, whatever statistics say."""

import pytest

from tests.maintenance import plans

JOBS_A_STATE = 10_000
BATCH = 500


@pytest.fixture
def seeded(rows, request):
    plans.forget_statistics(rows)
    request.param(rows, JOBS_A_STATE)
    rows.run("update pgbroker.queue set ageing_seconds = 7 where name = 'first'")
    rows.run("update pgbroker.job set priority = 1 where id %% 2 = 0")
    yield
    plans.restore_autovacuum(rows)


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("seeded", plans.STATES, indirect=True, ids=lambda state: state.__name__)
def test_a_batch_touches_no_more_than_its_rows(rows, seeded, mode):
    middle = rows.one("select (min(id) + max(id)) / 2 from pgbroker.job")
    params = {"queue": "first", "after": middle, "batch": BATCH}
    with rows.gateway.connection.transaction(force_rollback=True):
        _, astray, moved = rows.gateway.fetch("reorder_jobs", params)[0]
    assert astray == moved > BATCH / 10

    # the broker's own connections switch these off, and this statement runs on one of the host's
    plan = plans.plan_of(rows.gateway, "reorder_jobs", params, mode)
    assert "job_pkey" in plan.indexes, plan
    assert "job" not in plan.scanned, plan
    assert plan.rows_read["job"] <= 3 * BATCH, plan
