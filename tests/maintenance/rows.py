"""Rows for the tests of the duties, written by plain SQL: these tests are about single columns and moments."""

from typing import Any

from django_pgbroker.domain.states import JobState
from django_pgbroker.store.gateway import Gateway


class Rows:
    """Writes and reads rows on a connection of its own, so that what a duty has not committed is not seen."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def one(self, text: str, *params: Any) -> Any:
        """The first column of the first row, or None."""
        row = self.gateway.connection.execute(text, params).fetchone()
        return row[0] if row else None

    def run(self, text: str, *params: Any) -> None:
        self.gateway.connection.execute(text, params)

    def queue(self, name: str = "default") -> int:
        return self._name("queue", name)

    def job_type(self, name: str = "shop.send_receipt") -> int:
        return self._name("job_type", name)

    def _name(self, table: str, name: str) -> int:
        self.run(f"insert into pgbroker.{table} (name) values (%s) on conflict do nothing", name)
        return int(self.one(f"select id from pgbroker.{table} where name = %s", name))

    def job(
        self,
        queue_id: int,
        state: JobState = JobState.PENDING,
        *,
        job_type_id: int | None = None,
        due_in: float = -60,
        expires_in: float | None = None,
        lease_in: float = 60,
        priority: int = 0,
        attempt: int = 0,
        max_attempts: int = 3,
        worker_id: int | None = None,
    ) -> int:
        """A job and its payload; times are seconds from now."""
        is_running = state is JobState.RUNNING
        return int(
            self.one(
                """
                with new as (
                    insert into pgbroker.job (
                        tenant_id, queue_id, job_type_id, state, created_at, available_at, claim_order, expires_at,
                        priority, attempt, max_attempts, worker_id, lease_token, leased_at, started_at, lease_expires_at
                    )
                    select (select min(id) from pgbroker.tenant), %s, %s, %s, now(), now() + %s * interval '1 s',
                        now() + %s * interval '1 s' - %s * interval '60 s',
                        coalesce(now() + %s::float8 * interval '1 s', 'infinity'), %s, %s, %s, %s,
                        case when %s then nextval('pgbroker.lease_token_seq') end, case when %s then now() end,
                        case when %s then now() end, case when %s then now() + %s * interval '1 s' end
                    returning id
                )
                insert into pgbroker.job_payload (job_id, version, arguments, headers, correlation_id, created_by)
                select id, 2, '{"order_id": 7}', '{"trace": "abc"}', 'c-1', 'alice' from new returning job_id
                """,
                queue_id,
                job_type_id or self.job_type(),
                int(state),
                due_in,
                due_in,
                priority,
                expires_in,
                priority,
                attempt,
                max_attempts,
                worker_id,
                is_running,
                is_running,
                is_running,
                is_running,
                lease_in,
            )
        )

    def worker(
        self,
        *,
        knows: list[int] | None = None,
        silent_for: float = 0,
        heartbeat: float = 12,
        stopped_for: float | None = None,
    ) -> int:
        return int(
            self.one(
                """
                insert into pgbroker.worker (
                    name, hostname, process_id, version, queues, job_type_ids, concurrency, heartbeat_at,
                    heartbeat_seconds, stopped_at
                )
                values ('w', 'h', 1, '1', '{"default": 1}', %s, 1, now() - %s * interval '1 s', %s,
                    now() - %s::float8 * interval '1 s')
                returning id
                """,
                knows or [],
                silent_for,
                heartbeat,
                stopped_for,
            )
        )

    def state_of(self, job_id: int) -> JobState | None:
        """Where the job stands, live or archived; None when it is nowhere."""
        found = self.one(
            "select state from pgbroker.job where id = %s"
            " union all select state from pgbroker.archived_job where id = %s",
            job_id,
            job_id,
        )
        return None if found is None else JobState(found)
