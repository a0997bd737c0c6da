"""Very many jobs at once, made by the server itself."""

from tests.maintenance.rows import Rows


def add_dead_letters(
    rows: Rows, count: int, *, queue: str = "default", error: str = "no such order", job_type: str = "tests.add"
) -> list[int]:
    """Dead letters with ids that ascend, ended a minute ago; returns the first id and the last one."""
    first = rows.one(
        """
        with numbers as (
            select nextval(pg_get_serial_sequence('pgbroker.job', 'id')) as id from generate_series(1, %s)
        ),
        stored as (
            insert into pgbroker.archived_job (
                id, tenant_id, queue_id, job_type_id, created_at, available_at, finished_at, state, priority, attempt,
                max_attempts, deaths, interruptions, version, arguments, error_class, error_message, fingerprint
            )
            select id, (select min(id) from pgbroker.tenant), %s, %s, now() - interval '2 min',
                   now() - interval '2 min', now() - interval '1 min', 13, 0, 3, 3, 0, 0, 1, '{"left": 1}',
                   'ValueError', %s, 42
            from numbers
            returning id
        )
        select min(id) from stored
        """,
        count,
        rows.queue(queue),
        rows.job_type(job_type),
        error,
    )
    return [first, first + count - 1]


def add_waiting_jobs(rows: Rows, count: int, *, queue: str = "default", state: int = 0) -> list[int]:
    """Jobs that wait, with their payloads; returns the first id and the last one."""
    first = rows.one(
        """
        with stored as (
            insert into pgbroker.job (
                tenant_id, queue_id, job_type_id, state, created_at, available_at, claim_order
            )
            select (select min(id) from pgbroker.tenant), %s, %s, %s, now() - interval '1 min',
                   now() + case when %s = 2 then interval '1 h' else interval '-1 min' end, now()
            from generate_series(1, %s)
            returning id
        ),
        paid as (
            insert into pgbroker.job_payload (job_id, arguments) select id, '{"left": 1}' from stored
        )
        select min(id) from stored
        """,
        rows.queue(queue),
        rows.job_type("tests.add"),
        state,
        state,
        count,
    )
    return [first, first + count - 1]
