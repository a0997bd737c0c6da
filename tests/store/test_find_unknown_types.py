"""Unknown job types are found through the head of the claim index and the parked rows of each type, never by a scan."""

import pytest
from django.db import connection

from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.overview import find_unknown_types
from django_pgbroker.store.statement import statement
from tests import factories

pytestmark = pytest.mark.django_db

MANY = """
insert into pgbroker.job (tenant_id, queue_id, job_type_id, created_at, available_at, claim_order, state, parked_on)
select %(tenant)s, %(queue)s, %(job_type)s, now(), now(), now() + g * interval '1 ms',
       case when g %% 10 = 0 then 4 else 0 end, case when g %% 10 = 0 then -%(job_type)s end
from generate_series(1, 20000) as g
"""


def fill(job_type_id: int) -> None:
    names = {"tenant": factories.TenantFactory().pk, "queue": factories.QueueFactory().pk, "job_type": job_type_id}
    with connection.cursor() as cursor:
        cursor.execute(MANY, names)


@pytest.mark.parametrize("analysed", [False, True])
def test_the_search_reads_the_live_table_by_its_indexes(analysed: bool):
    fill(factories.JobTypeFactory().pk)
    factories.WorkerFactory()
    with connection.cursor() as cursor:
        if analysed:
            cursor.execute("analyze pgbroker.job")
        cursor.execute(f"explain {statement('find_unknown_types').text}", {"batch": 100, "lost_after": 5.0})
        plan = "\n".join(line for (line,) in cursor.fetchall())

    assert "using job_claim on job" in plan
    assert "using job_parked on job" in plan
    assert "Seq Scan on job " not in plan
    assert "Sort Key: job.claim_order" not in plan


def test_the_search_stops_after_the_rows_it_was_told_to_look_at():
    fill(factories.JobTypeFactory(name="old.type").pk)
    factories.WorkerFactory()

    (unknown,) = find_unknown_types(CallerGateway(), batch=100)

    assert unknown == ("old.type", 200)
