"""The fixture ``broker_database`` leaves nothing to the next test."""

import pytest
from django.db import connection

from django_pgbroker.models import Job, Tenant
from tests.factories import ArchivedJobFactory, ExecutionFactory, JobFactory
from tests.fixtures.database import empty_broker_tables

TABLES = """
select relname from pg_class where relnamespace = 'pgbroker'::regnamespace and relkind in ('r', 'p')
"""


def filled_tables() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        counts = [f"select '{table}', count(*) from pgbroker.{table}" for (table,) in cursor.fetchall()]
        cursor.execute(" union all ".join(counts))
        return {table: count for table, count in cursor.fetchall() if count}


@pytest.mark.usefixtures("broker_database")
def test_every_table_of_the_broker_is_emptied_and_the_default_tenant_stays() -> None:
    JobFactory.create_batch(3)
    ArchivedJobFactory(dead=True)
    ExecutionFactory()
    assert {"job", "job_payload", "archived_job_dead", "execution", "queue"} <= filled_tables().keys()

    empty_broker_tables()

    assert filled_tables() == {"tenant": 1}
    assert Tenant.objects.get().name == "default"


@pytest.mark.usefixtures("broker_database")
@pytest.mark.parametrize("turn", ["first", "second"])
def test_each_test_starts_with_no_rows_and_with_id_one(turn: str) -> None:
    assert Job.objects.count() == 0

    assert JobFactory().pk == 1
