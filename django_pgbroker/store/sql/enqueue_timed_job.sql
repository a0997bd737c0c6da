-- purpose: store one job that has a start, an expiry or a deadline; as enqueue_job, which is for all others
-- params:  queue, job_type, tenant text; delay_seconds float8, run_at timestamptz (both null: now);
--          expires_seconds float8, expires_at timestamptz, deadline_seconds float8, deadline_at timestamptz (null: none);
--          priority, timeout_seconds, max_attempts, version int; arguments, headers jsonb; correlation_id, created_by text
-- returns: id; no row when one of the names does not exist
-- moves:   -> pending | scheduled
-- locks:   none but the new rows
-- index:   queue_name_key
with named as materialized (
    select
        queue.id as queue_id,
        queue.ageing_seconds,
        job_type.id as job_type_id,
        tenant.id as tenant_id,
        pgbroker.clock() as asked_at
    from pgbroker.queue
    cross join pgbroker.job_type
    cross join pgbroker.tenant
    where queue.name = %(queue)s and job_type.name = %(job_type)s and tenant.name = %(tenant)s
), timed as materialized (
    select
        named.*,
        greatest(asked_at, %(run_at)s::timestamptz, asked_at + make_interval(secs => %(delay_seconds)s::float8)) as available_at,
        least(%(deadline_at)s::timestamptz, asked_at + make_interval(secs => %(deadline_seconds)s::float8)) as deadline_at,
        least(%(expires_at)s::timestamptz, asked_at + make_interval(secs => %(expires_seconds)s::float8)) as expires_at
    from named
), stored as (
    insert into pgbroker.job (
        tenant_id, queue_id, job_type_id, created_at, available_at, claim_order, expires_at, deadline_at,
        timeout_seconds, state, priority, max_attempts
    )
    select
        tenant_id, queue_id, job_type_id, asked_at, available_at,
        available_at - make_interval(secs => %(priority)s::int * ageing_seconds),
        coalesce(least(expires_at, deadline_at), 'infinity'), deadline_at,
        %(timeout_seconds)s::int, case when available_at <= asked_at then 0 else 2 end,
        %(priority)s::int, %(max_attempts)s::int
    from timed
    returning id
), paid as (
    insert into pgbroker.job_payload (job_id, version, arguments, headers, correlation_id, created_by)
    select id, %(version)s::int, %(arguments)s::jsonb, %(headers)s::jsonb, %(correlation_id)s::text, %(created_by)s::text
    from stored
)
select id
from stored;
