"""The plans of the hot path hold at the size of years: a million live jobs, and ten million archived ones beside them.

The suite runs a tenth and a hundredth of that; ``make drill`` runs it all, by the same code.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.store.statement import statement
from tests.fixtures.database import empty_broker_tables
from tests.maintenance.rows import Rows
from tests.plans.years import Years
from tests.store.scene import PATIENT, Scene
from tests.store.statistics import BATCH, HONEST, NAMES, STATES, Size, most_rows

# The mark has the test database made, which no fixture of one module alone does.
pytestmark = pytest.mark.django_db

#: What starts empty in every state; the history stays.
LIVE = ("job", "job_payload", "job_dependency", "stat_minute")

MODES = ["custom", "generic"]


class Scale(NamedTuple):
    """How many jobs are live, and how many are archived."""

    live: int
    archived: int


SCALES = [
    pytest.param(Scale(100_000, 100_000), id="100k"),
    pytest.param(Scale(1_000_000, 10_000_000), id="1M", marks=pytest.mark.drill),
]


@pytest.fixture(scope="module", params=SCALES)
def years(request, django_db_setup, django_db_blocker) -> Iterator[tuple[Scale, Years]]:
    with django_db_blocker.unblock():
        rows = Rows(open_gateway("default", "test years", **PATIENT))
        made = Years(rows, request.param.archived)
        try:
            yield request.param, made
        finally:
            made.remove()
            empty_broker_tables()
            rows.gateway.connection.close()


@pytest.fixture(scope="module", params=list(STATES))
def scene(request, years, django_db_blocker) -> Iterator[Scene]:
    scale, _ = years
    with django_db_blocker.unblock():
        made = Scene(request.param, size=Size(few=scale.live, many=scale.live), empties=LIVE)
        try:
            yield made
        finally:
            made.close()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_a_statement_touches_its_batch_by_its_index_however_much_there_is(scene, name, mode):
    plan = scene.explain(scene.insured, name, mode)

    assert not plan.read_whole, plan.text
    assert set(statement(name).header["index"].split(", ")) <= plan.indexes, plan.text
    assert plan.sorted_rows <= BATCH, plan.text
    assert plan.rows.get("job", 0) <= most_rows(name, scene.running), plan.text
    for table in ("job_payload", "archived_job", "execution"):
        assert plan.rows.get(table, 0) <= 2 * BATCH, plan.text


@pytest.mark.parametrize("scene", sorted(HONEST), indirect=True, scope="module")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NAMES)
def test_with_honest_statistics_a_statement_needs_no_insurance_at_size(scene, name, mode):
    plan = scene.explain(scene.plain, name, mode)

    assert plan.read_whole.isdisjoint({"job", "job_payload"}), plan.text
    assert plan.sorted_rows <= BATCH, plan.text
    assert plan.rows.get("job", 0) <= most_rows(name, scene.running), plan.text
    for table in ("archived_job", "execution"):
        assert plan.rows.get(table, 0) <= 2 * BATCH, plan.text


@pytest.mark.parametrize("mode", MODES)
def test_a_job_is_found_in_the_oldest_partition_and_among_the_dead_by_its_key(scene, years, mode):
    _, history = years
    for job_id, state in ((history.oldest_id, 11), (-1, 13)):
        scene.work.params["find_job"] = {"id": job_id}
        [(found, *_)] = scene.insured.fetch("find_job", {"id": job_id})
        plan = scene.explain(scene.insured, "find_job", mode)
        assert found == state
        assert not plan.read_whole, plan.text
        assert plan.rows["archived_job"] == 1, plan.text


def test_the_history_is_as_large_as_it_is_said_to_be(scene, years):
    scale, _ = years
    for table in ("archived_job", "execution"):
        assert scene.rows.one(f"select count(*) from pgbroker.{table}") >= scale.archived
    assert scene.rows.one("select count(*) from pgbroker.job") >= scale.live - BATCH
