"""Jobs of one queue and one type, and what becomes of them, for the tests of the statements."""

from typing import Any

from django_pgbroker.domain.records import ClaimedJob, ErrorRecord, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.store.claim import claim_jobs
from django_pgbroker.store.gateway import Gateway
from tests.maintenance.rows import Rows

ERROR = ErrorRecord("builtins.ValueError", 'no "such" order \\ {7}', "Traceback …\nValueError", -42)

#: Every outcome with a next state that it may have, as the verdicts of a worker pair them.
OUTCOMES = [
    (Outcome.RELEASED, JobState.PENDING),
    (Outcome.COMPLETED, JobState.COMPLETED),
    (Outcome.FAILED, JobState.PENDING),
    (Outcome.FAILED, JobState.SCHEDULED),
    (Outcome.FAILED, JobState.DEAD),
    (Outcome.TIMED_OUT, JobState.SCHEDULED),
    (Outcome.TIMED_OUT, JobState.DEAD),
    (Outcome.SNOOZED, JobState.SCHEDULED),
    (Outcome.CANCELLED, JobState.CANCELLED),
    (Outcome.LOST, JobState.SCHEDULED),
    (Outcome.LOST, JobState.DEAD),
    (Outcome.INTERRUPTED, JobState.PENDING),
]


class Shop:
    """One queue, one job type, and rows read back."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.queue = rows.queue()
        self.job_type = rows.job_type()

    def job(self, state: JobState = JobState.PENDING, **options: Any) -> int:
        return self.rows.job(self.queue, state, job_type_id=self.job_type, **options)

    def fill(self, count: int, state: JobState = JobState.PENDING, *, spread_seconds: float = 0.001) -> None:
        """Many jobs at once, each due a little after the one before it, all in the past."""
        self.rows.run(
            """
            with new as (
                insert into pgbroker.job (
                    tenant_id, queue_id, job_type_id, state, created_at, available_at, claim_order
                )
                select (select min(id) from pgbroker.tenant), %s, %s, %s, now(), at, at
                from generate_series(1, %s) as number
                cross join lateral (select now() - interval '1 day' + number * %s * interval '1 s') as due (at)
                returning id
            )
            insert into pgbroker.job_payload (job_id, arguments) select id, '{"order_id": 7}' from new
            """,
            self.queue, self.job_type, int(state), count, spread_seconds,
        )  # fmt: skip

    def claim(self, gateway: Gateway, batch: int = 10, **options: Any) -> list[ClaimedJob]:
        given = {"job_type_ids": [self.job_type], "lease_seconds": 60, "worker_id": 1, **options}
        return claim_jobs(gateway, queue_id=self.queue, batch=batch, **given)

    def claim_one(self, gateway: Gateway, **options: Any) -> ClaimedJob:
        self.job(**options)
        [claim] = self.claim(gateway, 1)
        return claim

    def lapse(self, *claims: ClaimedJob) -> None:
        """The leases of these claims are over."""
        self.rows.run(
            "update pgbroker.job set lease_expires_at = now() - interval '1 s' where id = any(%s)",
            [claim.id for claim in claims],
        )

    def live(self, job_id: int) -> dict[str, Any]:
        """The row in the live table; empty when there is none."""
        return self._read("select to_jsonb(job) from pgbroker.job where id = %s", job_id)

    def archived(self, job_id: int) -> dict[str, Any]:
        """The row in the archive; empty when there is none."""
        return self._read("select to_jsonb(row) from pgbroker.archived_job as row where id = %s", job_id)

    def executions(self, job_id: int) -> list[dict[str, Any]]:
        found = self.rows.gateway.connection.execute(
            "select to_jsonb(row) from pgbroker.execution as row where job_id = %s order by lease_token", [job_id]
        )
        return [row for (row,) in found]

    def _read(self, text: str, job_id: int) -> dict[str, Any]:
        return dict(self.rows.one(text, job_id) or {})

    def everything(self) -> list[Any]:
        """All rows that a claim's end could write, to see that nothing has changed."""
        tables = (
            "job",
            "job_payload",
            "archived_job",
            "execution",
            "stat_minute",
            "job_dependency",
            "job_progress",
            "job_step",
        )
        return [
            self.rows.one(f"select coalesce(jsonb_agg(row order by row::text), '[]') from pgbroker.{table} as row")
            for table in tables
        ]


def verdict(claim: ClaimedJob, outcome: Outcome, next_state: JobState, **fields: Any) -> Verdict:
    """The verdict of a worker; a failure carries an error, a result is stored with a completion."""
    given: dict[str, Any] = {"delay_seconds": 30.0 if next_state is JobState.SCHEDULED else 0.0}
    if outcome in {Outcome.FAILED, Outcome.TIMED_OUT}:
        given["error"] = ERROR
    return Verdict(claim.id, claim.lease_token, outcome, next_state, **{**given, "run_microseconds": 1500, **fields})


def completed(claim: ClaimedJob, **fields: Any) -> Verdict:
    return verdict(claim, Outcome.COMPLETED, JobState.COMPLETED, **fields)
