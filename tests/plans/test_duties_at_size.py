"""The plans of the duties hold with a million live jobs, two hundred thousand in each state. Run by ``make drill``."""

from collections.abc import Iterator

import pytest

from django_pgbroker.runtime.connections import open_gateway
from tests.maintenance import plans
from tests.maintenance.rows import Rows
from tests.store.scene import PATIENT, PLAIN

pytestmark = pytest.mark.drill

JOBS_A_STATE = 200_000


@pytest.fixture
def patient_rows(broker_database) -> Iterator[Rows]:
    opened = open_gateway("default", "test rows", **PLAIN, **PATIENT)
    yield Rows(opened)
    opened.connection.close()


@pytest.mark.parametrize("state", plans.STATES, ids=lambda state: state.__name__)
def test_the_statements_of_the_duties_use_their_index_among_a_million_jobs(gateway, patient_rows, state):
    plans.forget_statistics(patient_rows)
    try:
        state(patient_rows, JOBS_A_STATE // 4 if state is plans.many else JOBS_A_STATE)
        assert patient_rows.one("select count(*) from pgbroker.job") >= 5 * JOBS_A_STATE
        plans.check_statements(gateway)
    finally:
        plans.restore_autovacuum(patient_rows)
