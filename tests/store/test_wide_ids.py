"""B056: nothing in the broker is narrower than 64 bits."""

from collections.abc import Iterator

import pytest

from django_pgbroker.domain.job_spec import JobSpec
from django_pgbroker.domain.options import Instant
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.dependants import read_woken_queues, send_release_dependants
from django_pgbroker.store.enqueue import enqueue_job
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.identifiers import find_job_type_ids, find_queue_ids, find_tenant_name
from django_pgbroker.store.lookup import find_job
from django_pgbroker.store.promote import promote_jobs
from django_pgbroker.store.reclaim import find_claims_of_worker, find_recorded_claims, reclaim_jobs
from django_pgbroker.store.renew import renew_leases
from django_pgbroker.store.unknown_types import park_unknown_jobs, wake_known_jobs
from tests.maintenance.rows import Rows
from tests.store.jobs import Shop, completed, verdict

LAST_NARROW = 2**31 - 1
START = LAST_NARROW - 2

SEQUENCES = "select oid::regclass::text from pg_class where relnamespace = 'pgbroker'::regnamespace and relkind = 'S'"
NARROW_COLUMNS = """
    select table_name || '.' || column_name from information_schema.columns
    where table_schema = 'pgbroker' and (column_name = 'id' or column_name ~ '(_id|_token|_on)$')
        and column_name not in ('correlation_id', 'process_id') and data_type <> 'bigint'
"""


@pytest.fixture
def wide(rows: Rows) -> Iterator[Shop]:
    """A shop all of whose ids are about to leave 32 bits."""
    token = rows.one("select last_value from pgbroker.lease_token_seq")
    for (name,) in rows.gateway.connection.execute(SEQUENCES).fetchall():
        rows.run("select setval(%s::regclass, %s)", name, START)
    for table in ("tenant", "queue", "job_type"):  # migrate has made rows of the declared names
        rows.run(f"delete from pgbroker.{table}")
    for name in ("one", "two", "default"):
        rows.run("insert into pgbroker.tenant (name) values (%s)", name)
    for name in ("one", "two"):
        rows.queue(name)
        rows.job_type(name)
        rows.worker()
    yield Shop(rows)
    rows.run("select setval('pgbroker.lease_token_seq', %s)", token)


def spec(**fields: object) -> JobSpec:
    never = Instant()
    given = {
        "queue": "default", "job_type": "shop.send_receipt", "tenant": "default", "version": 1,
        "priority": 0, "max_attempts": 5, "timeout_seconds": 60, "available": never, "expires": never,
        "deadline": never, "correlation_id": None, "created_by": None, **fields,
    }  # fmt: skip
    return JobSpec(**given)


def test_every_id_key_and_token_column_is_a_bigint_and_every_sequence_too(rows):
    narrow = [name for (name,) in rows.gateway.connection.execute(NARROW_COLUMNS).fetchall()]
    assert narrow == []
    assert (
        rows.one("select count(*) from pg_sequences where schemaname = 'pgbroker' and data_type <> 'bigint'::regtype")
        == 0
    )


def test_a_job_lives_its_whole_life_beyond_32_bits(gateway, rival, wide):
    caller = CallerGateway()
    ids = [enqueue_job(caller, spec(), "{}") for _ in range(5)]
    assert max(ids) > LAST_NARROW
    assert find_queue_ids(gateway, ["default"]) == {"default": wide.queue}
    assert find_job_type_ids(gateway, ["shop.send_receipt"]) == {"shop.send_receipt": wide.job_type}
    worker_id = wide.rows.worker(knows=[wide.job_type])
    assert min(worker_id, wide.queue, wide.job_type) > LAST_NARROW

    claims = wide.claim(gateway, 5, worker_id=worker_id)
    assert [claim.id for claim in claims] == ids
    assert max(claim.lease_token for claim in claims) > LAST_NARROW
    assert find_tenant_name(gateway, claims[0].tenant_id) == "default"
    assert find_claims_of_worker(gateway, worker_id) == {claim[:2] for claim in claims}
    assert not any(renew_leases(gateway, claims, set(ids), 600))

    finished, retried, lapsed, dead, snoozed = claims
    endings = [
        completed(finished),
        verdict(retried, Outcome.FAILED, JobState.SCHEDULED, delay_seconds=0.0),
        verdict(dead, Outcome.FAILED, JobState.DEAD),
        verdict(snoozed, Outcome.SNOOZED, JobState.SCHEDULED, delay_seconds=0.0),
    ]
    assert not any(acknowledge_jobs(gateway, endings))
    assert find_recorded_claims(gateway, [claim[:2] for claim in claims]) == {
        claim[:2] for claim in (finished, retried, dead, snoozed)
    }
    wide.lapse(lapsed)
    assert [job.id for job in reclaim_jobs(rival, 10)] == [lapsed.id]
    wide.rows.run("update pgbroker.job set available_at = now()")
    assert promote_jobs(gateway, wide.queue, 10).moved == 3
    again = wide.claim(gateway, 10, worker_id=worker_id)
    assert not any(acknowledge_jobs(gateway, [completed(claim) for claim in again]))
    assert [find_job(caller, each).state for each in ids] == [
        JobState.COMPLETED, JobState.COMPLETED, JobState.COMPLETED, JobState.DEAD, JobState.COMPLETED,
    ]  # fmt: skip
    assert wide.rows.one("select count(*) from pgbroker.execution") == 8


def test_an_edge_beyond_32_bits_is_released(gateway, wide):
    wide.fill(6)
    *_, parent, child = wide.claim(gateway, 6)
    assert not any(acknowledge_jobs(gateway, [verdict(child, Outcome.RELEASED, JobState.PENDING)]))
    wide.rows.run("update pgbroker.job set state = 3, unmet = 1 where id = %s", child.id)
    wide.rows.run(
        "insert into pgbroker.job_dependency (job_id, depends_on_job_id) values (%s, %s)", child.id, parent.id
    )
    assert not any(acknowledge_jobs(gateway, [completed(parent)]))
    assert read_woken_queues(send_release_dependants(gateway, [parent.id])) == ["default"]
    assert wide.rows.state_of(child.id) is JobState.PENDING


def test_a_job_of_an_unknown_type_beyond_32_bits_is_parked_and_comes_back(gateway, wide):
    job_id = enqueue_job(CallerGateway(), spec(), "{}")
    stranger = wide.rows.worker(knows=[])
    park_unknown_jobs(gateway, 10)
    assert wide.live(job_id)["parked_on"] == -wide.job_type
    wide.rows.run("update pgbroker.worker set job_type_ids = array[%s::bigint] where id = %s", wide.job_type, stranger)
    wake_known_jobs(gateway, 10)
    assert wide.rows.state_of(job_id) is JobState.PENDING
