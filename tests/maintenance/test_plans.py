"""Every statement of a duty uses its index and reads little, whatever the statistics say."""

import pytest

from tests.maintenance import plans

JOBS_A_STATE = 10_000


@pytest.fixture
def seeded(rows, request):
    plans.forget_statistics(rows)
    request.param(rows, JOBS_A_STATE)
    yield
    plans.restore_autovacuum(rows)


@pytest.mark.parametrize("seeded", plans.STATES, indirect=True, ids=lambda state: state.__name__)
def test_the_statements_of_the_duties_use_their_index_in_every_state_of_the_tables(gateway, seeded):
    plans.check_statements(gateway)


def test_a_statement_without_its_index_is_found_out(gateway, rows):
    plans.fill(rows, 1000)
    with gateway.transaction():
        gateway.connection.execute("set local enable_seqscan = on")
        gateway.connection.execute("drop index pgbroker.job_expiring")
        plan = plans.plan_of(gateway, "expire_jobs", {"batch": 10}, "force_custom_plan")
        gateway.connection.execute("rollback")
    assert "job_expiring" not in plan.indexes
    assert plan.rows_read["job"] > 400
