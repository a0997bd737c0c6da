"""The live table in the states that have led planners astray, each with jobs for every statement of the hot path."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.store.arrays import array_of_booleans, array_of_integers, array_of_numbers, array_of_texts
from django_pgbroker.store.gateway import Gateway
from tests.maintenance.rows import Rows
from tests.store.jobs import Shop, completed

BATCH = 100

#: Remembered by each job that remembers anything.
STEPS = 3


class Size(NamedTuple):
    """Pending jobs in the states that have misled the statistics, and in the one that has not."""

    few: int
    many: int


SMALL = Size(few=30_000, many=100_000)

TABLES = (
    "job", "job_payload", "job_dependency", "archived_job", "execution", "stat_minute", "job_progress", "job_step",
)  # fmt: skip
_TUNED = ("job", "job_payload", "job_dependency")


class Fields:
    """Builds one state of the tables and knows ids for every statement.

    Args:
        gateway: a connection as workers have it; the rows that a worker would write are written through it.
        rows: another session, which fills.
        size: how large the tables are.
        empties: tables that hold nothing at the start; the others are left as they are.
    """

    def __init__(self, gateway: Gateway, rows: Rows, size: Size, empties: Collection[str]) -> None:
        self.gateway = gateway
        self.rows = rows
        self.size = size
        assert gateway.connection.info.dbname.startswith("test_"), "this empties tables"
        for table in empties:
            rows.run(f"truncate pgbroker.{table}")
        for table in _TUNED:
            rows.run(f"alter table pgbroker.{table} set (autovacuum_enabled = off)")
        self.forget_statistics()
        self.shop = Shop(rows)

    def forget_statistics(self) -> None:
        self.rows.run(
            "delete from pg_statistic where starelid in"
            " (select oid from pg_class where relnamespace = 'pgbroker'::regnamespace)"
        )

    def analyse(self) -> None:
        for table in TABLES:
            self.rows.run(f"analyze pgbroker.{table}")

    def restore(self) -> None:
        for table in _TUNED:
            self.rows.run(f"alter table pgbroker.{table} reset (autovacuum_enabled)")
            self.rows.run(f"truncate pgbroker.{table}")
        self.forget_statistics()


def never_analysed(fields: Fields) -> None:
    fields.shop.fill(fields.size.few)


def analysed_while_empty(fields: Fields) -> None:
    fields.analyse()
    fields.shop.fill(fields.size.few)


def all_running(fields: Fields) -> None:
    fields.shop.fill(fields.size.few // 3)
    fields.rows.run(
        "update pgbroker.job set state = 1, lease_token = nextval('pgbroker.lease_token_seq'), worker_id = 9,"
        " leased_at = now(), lease_expires_at = now() + interval '1 h'"
    )
    fields.analyse()
    fields.shop.fill(fields.size.few)


def drained(fields: Fields) -> None:
    fields.shop.fill(fields.size.few)
    for table in _TUNED:
        fields.rows.run(f"delete from pgbroker.{table}")
        fields.rows.run(f"vacuum (truncate off, analyze) pgbroker.{table}")
    fields.shop.fill(fields.size.few)


def many_rows(fields: Fields) -> None:
    fields.shop.fill(fields.size.many)
    fields.analyse()


STATES: dict[str, Callable[[Fields], None]] = {
    "never analysed": never_analysed,
    "analysed while empty, then filled": analysed_while_empty,
    "all running, then filled": all_running,
    "drained, then filled": drained,
    "many rows": many_rows,
}

#: In these the statistics say what is there.
HONEST = {"many rows"}


@dataclass
class Work:
    """Jobs in every stage, so that each statement has a batch to work on."""

    held: list[ClaimedJob]
    finished: list[int]
    params: dict[str, dict[str, Any]]


def add_work(fields: Fields) -> Work:
    """Claims that are held, claims that have finished and have children, due, lapsed and overdue jobs."""
    shop, rows, gateway = fields.shop, fields.rows, fields.gateway
    held, lapsed, done = (shop.claim(gateway, BATCH) for _ in range(3))
    assert not any(acknowledge_jobs(gateway, [completed(claim) for claim in done]))
    shop.lapse(*lapsed)
    for each in held[: BATCH // 2]:
        rows.run("update pgbroker.job set is_tracked = true where id = %s", each.id)
        rows.run("insert into pgbroker.job_progress values (%s, %s, 1, 2, 'load', now())", each.id, each.lease_token)
        rows.run(
            "insert into pgbroker.job_step select %s, 'step ' || n, %s, '7', now() from generate_series(1, %s) as n",
            each.id,
            each.lease_token,
            STEPS,
        )
    rows.run(
        "with child as (update pgbroker.job set state = 3, unmet = 1 where id = any(array("
        "select id from pgbroker.job where state = 0 order by id desc limit %s)) returning id)"
        " insert into pgbroker.job_dependency (job_id, depends_on_job_id)"
        " select id, (%s::bigint[])[row_number() over ()] from child",
        BATCH, [claim.id for claim in done],
    )  # fmt: skip
    for change, offset in (
        ("state = 2, available_at = now() - interval '1 s'", 1),
        ("state = 2, available_at = now() + interval '1 h'", 2),
        ("expires_at = now() - interval '1 s'", 3),
    ):
        rows.run(
            f"update pgbroker.job set {change} where id = any(array(select id from pgbroker.job where state = 0"
            " order by id desc offset %s limit %s))",
            offset * 2_000, BATCH * 2,
        )  # fmt: skip
    return Work(held, [claim.id for claim in done], make_params(fields, held, done))


def make_params(fields: Fields, held: list[ClaimedJob], done: list[ClaimedJob]) -> dict[str, dict[str, Any]]:
    """Parameters of every statement that has a plan to be looked at."""
    ordered = sorted(held)
    ids, tokens = (array_of_integers(claim[field] for claim in ordered) for field in (0, 1))
    each = range(len(ordered))
    return {
        "claim_jobs": {
            "queue_id": fields.shop.queue, "job_type_ids": array_of_integers([fields.shop.job_type]),
            "floor": float("-inf"), "batch": BATCH, "begin": BATCH // 2, "lease_seconds": 60.0, "worker_id": 1,
        },
        "acknowledge_jobs": {
            "ids": ids, "tokens": tokens, "outcomes": array_of_integers(2 if n % 4 == 3 else 1 for n in each),
            "next_states": array_of_integers(2 if n % 4 == 3 else 10 for n in each),
            "delays": array_of_numbers(5.0 for _ in each),
            "run_microseconds": array_of_integers(n * 1000 for n in each),
            "results": array_of_texts(None for _ in each), "errors": array_of_texts(None for _ in each),
            "reasons": array_of_texts(None for _ in each), "lapsed": False,
        },
        "release_dependants": {"ids": array_of_integers(sorted(claim.id for claim in done))},
        "renew_leases": {
            "ids": ids, "tokens": tokens, "begun": array_of_booleans(True for _ in each), "lease_seconds": 60.0,
        },
        "record_progress": {
            "ids": ids, "tokens": tokens, "dones": array_of_numbers(7.5 for _ in each),
            "totals": array_of_numbers(10.0 if n % 2 else None for n in each),
            "stages": array_of_texts("load" if n % 3 else None for n in each),
        },
        "record_step": {"id": held[0].id, "token": held[0].lease_token, "name": "step 2", "result": "[1]"},
        "find_steps": {"id": held[0].id},
        "promote_jobs": {"queue_id": fields.shop.queue, "batch": BATCH, "floor": float("-inf")},
        "find_lapsed_jobs": {"batch": BATCH},
        "find_overdue_jobs": {"batch": BATCH, "margin": 0.0},
        "cancel_jobs": {"ids": array_of_integers([held[0].id]), "actor": "ada", "reason": None},
        "request_cancels": {"ids": array_of_integers([held[0].id]), "actor": "ada", "reason": None},
        "lock_jobs": {"ids": ids},
        "lock_archived_jobs": {"ids": array_of_integers(claim.id for claim in done)},
        "lock_matching_jobs": {
            "after": ordered[0].id - 1, "until": ordered[0].id + 2 * BATCH, "batch": BATCH, "states": "{0,1,2,3,4}",
            "queue": "default", "tried": None, "job_type": None, "tenant": "default", "created_after": None,
            "created_before": None,
        },
        "find_job_window": {"after": ordered[0].id - 1, "until": 2**63 - 1, "rows": BATCH},
        "run_jobs_now": {"ids": ids}, "release_jobs": {"ids": ids},
        "set_job_priorities": {"ids": ids, "priority": 9}, "move_jobs": {"ids": ids, "queue": "default"},
        "redrive_jobs": {
            "ids": array_of_integers(claim.id for claim in done), "keep_attempts": False, "timeout_seconds": 60,
        },
        "expire_jobs": {"batch": BATCH},
        "find_job": {"id": held[0].id},
        "find_recorded_claims": {
            "ids": array_of_integers(claim.id for claim in done),
            "tokens": array_of_integers(claim.lease_token for claim in done),
        },
        "enqueue_job": ENQUEUED,
        "enqueue_timed_job": {
            **ENQUEUED, "delay_seconds": None, "run_at": None, "expires_seconds": 60.0, "expires_at": None,
            "deadline_seconds": None, "deadline_at": None,
        },
    }  # fmt: skip


ENQUEUED = {
    "queue": "default", "job_type": "shop.send_receipt", "tenant": "default", "arguments": "{}", "headers": None,
    "version": 1,
    "priority": 0, "max_attempts": 3, "timeout_seconds": 60, "correlation_id": None, "created_by": None,
}  # fmt: skip


#: The statements that are looked at.
NAMES = [
    "claim_jobs", "acknowledge_jobs", "release_dependants", "renew_leases", "promote_jobs", "find_lapsed_jobs",
    "enqueue_job", "enqueue_timed_job", "expire_jobs", "find_job", "find_recorded_claims", "find_overdue_jobs",
    "cancel_jobs", "request_cancels", "record_progress", "record_step", "find_steps", "lock_jobs", "lock_archived_jobs",
    "lock_matching_jobs", "find_job_window", "run_jobs_now", "release_jobs", "set_job_priorities", "move_jobs",
    "redrive_jobs",
]  # fmt: skip


#: Rows of the live table that a statement may touch, beyond which it wades.
def most_rows(name: str, running: int) -> int:
    """A small multiple of the batch; the sweeps of lapsed leases and overdue jobs read the running jobs."""
    few = {
        "find_job": 2, "enqueue_job": 0, "enqueue_timed_job": 0, "find_lapsed_jobs": running,
        "find_overdue_jobs": running, "cancel_jobs": 2, "request_cancels": 4, "record_step": 1, "find_steps": 0,
    }  # fmt: skip
    return few.get(name, 4 * BATCH)
