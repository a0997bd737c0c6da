-- purpose: store one job that may start now, with its payload; its queue, job type and tenant are given by name
-- params:  queue, job_type, tenant text; priority, timeout_seconds, max_attempts, version int; arguments, headers jsonb;
--          correlation_id, created_by text
-- returns: id; no row when one of the names does not exist
-- moves:   -> pending
-- locks:   none but the new rows
-- index:   queue_name_key
with stored as (
    insert into pgbroker.job (
        tenant_id, queue_id, job_type_id, created_at, available_at, claim_order, timeout_seconds, state, priority,
        max_attempts
    )
    select
        tenant.id, queue.id, job_type.id, pgbroker.clock(), pgbroker.clock(),
        pgbroker.clock() - make_interval(secs => %(priority)s::int * ageing_seconds),
        %(timeout_seconds)s::int, 0, %(priority)s::int, %(max_attempts)s::int
    from pgbroker.queue
    cross join pgbroker.job_type
    cross join pgbroker.tenant
    where queue.name = %(queue)s and job_type.name = %(job_type)s and tenant.name = %(tenant)s
    returning id
), paid as (
    insert into pgbroker.job_payload (job_id, version, arguments, headers, correlation_id, created_by)
    select id, %(version)s::int, %(arguments)s::jsonb, %(headers)s::jsonb, %(correlation_id)s::text, %(created_by)s::text
    from stored
)
select id
from stored;
