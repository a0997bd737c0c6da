"""No statement of the hot path wades, whatever the statistics say: by EXPLAIN, with custom and with generic plans."""

from collections.abc import Iterator

import pytest

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.store.statement import statement
from tests.fixtures.database import empty_broker_tables
from tests.store.plans import explain_prepared, prepare
from tests.store.scene import Scene
from tests.store.statistics import BATCH, HONEST, NAMES, STATES, STEPS, make_params, most_rows

# The mark has the test database made, which no fixture of one module alone does.
pytestmark = pytest.mark.django_db

NOBODY = ClaimedJob(1, 1, 1, 1, 1, 1, 3, 0, 60, 0, 0.0, None, True, 1, "{}", None, None, 0.0, 0)


@pytest.fixture(scope="module", params=list(STATES))
def scene(request, django_db_setup, django_db_blocker) -> Iterator[Scene]:
    with django_db_blocker.unblock():
        made = Scene(request.param)
        try:
            yield made
        finally:
            made.close()
            empty_broker_tables()


@pytest.mark.parametrize("mode", ["custom", "generic"])
@pytest.mark.parametrize("name", NAMES)
def test_a_statement_reads_no_table_whole_sorts_nothing_and_touches_its_batch_by_its_index(scene, name, mode):
    plan = scene.explain(scene.insured, name, mode)

    assert not plan.read_whole, plan.text
    assert set(statement(name).header["index"].split(", ")) <= plan.indexes, plan.text
    assert plan.sorted_rows <= BATCH, plan.text
    assert plan.rows.get("job", 0) <= most_rows(name, scene.running), plan.text


@pytest.mark.parametrize("scene", sorted(HONEST), indirect=True, scope="module")
@pytest.mark.parametrize("mode", ["custom", "generic"])
@pytest.mark.parametrize("name", NAMES)
def test_with_honest_statistics_a_statement_needs_no_insurance(scene, name, mode):
    plan = scene.explain(scene.plain, name, mode)

    assert plan.read_whole.isdisjoint({"job", "job_payload"}), plan.text
    assert plan.sorted_rows <= BATCH, plan.text
    assert plan.rows.get("job", 0) <= most_rows(name, scene.running), plan.text


@pytest.mark.parametrize("mode", ["custom", "generic"])
def test_a_paused_queue_costs_a_claim_nothing(scene, mode):
    scene.rows.run("update pgbroker.queue set paused_at = now()")
    try:
        plan = scene.explain(scene.insured, "claim_jobs", mode)
    finally:
        scene.rows.run("update pgbroker.queue set paused_at = null")
    assert plan.rows.get("job", 0) == 0, plan.text


def test_every_statement_has_a_batch_to_work_on_in_this_state(scene):
    """Otherwise the plans above say nothing."""
    answers = {}
    for name in NAMES:
        with scene.insured.connection.transaction(force_rollback=True):
            answers[name] = scene.insured.fetch(name, scene.work.params[name])
    rows = {name: len(answer) for name, answer in answers.items()}
    assert rows == {
        "claim_jobs": BATCH, "acknowledge_jobs": 0, "release_dependants": 1, "renew_leases": 0, "promote_jobs": 1,
        "find_lapsed_jobs": BATCH, "enqueue_job": 1, "enqueue_timed_job": 1, "expire_jobs": BATCH, "find_job": 1,
        "find_recorded_claims": BATCH, "find_overdue_jobs": 0, "cancel_jobs": 0, "request_cancels": 1,
        "record_progress": 0, "record_step": 1, "find_steps": STEPS, "lock_jobs": BATCH, "lock_archived_jobs": BATCH,
        "lock_matching_jobs": BATCH, "find_job_window": 1, "run_jobs_now": 0, "release_jobs": 0,
        "set_job_priorities": 0, "move_jobs": 0, "redrive_jobs": 0,
    }  # fmt: skip
    assert answers["promote_jobs"][0][0] == BATCH


def test_plans_that_were_made_on_an_empty_table_still_hold_when_it_is_full(broker_database):
    """A worker that started in an idle night has planned everything before the first job came."""
    early = open_gateway("default", "test early", plan_cache_mode="force_generic_plan")
    early.connection.prepare_threshold = None  # or psycopg would forget what is prepared whenever it rolls back

    def plan_for_good(scene: Scene) -> None:
        scene.fields.analyse()
        for name, params in make_params(scene.fields, [NOBODY], [NOBODY]).items():
            prepare(early, name)
            explain_prepared(early, name, params)

    scene = Scene("analysed while empty, then filled", before=plan_for_good)
    try:
        for name in NAMES:
            plan = explain_prepared(early, name, scene.work.params[name])
            assert not plan.read_whole, plan.text
            assert plan.sorted_rows <= BATCH, plan.text
            assert plan.rows.get("job", 0) <= most_rows(name, scene.running), plan.text
        generic = "select min(generic_plans), max(custom_plans) from pg_prepared_statements where name = any(%s)"
        assert early.connection.execute(generic, [NAMES]).fetchone() == (2, 0)
    finally:
        scene.close()
        early.connection.close()
