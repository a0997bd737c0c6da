-- purpose: store a new job that carries what another one carries, live or finished
-- params:  id bigint, actor text, queue text, priority int, arguments jsonb, version int (each null: as the original),
--          timeout_seconds int (of an original that was archived before its own was kept)
-- returns: id of the new job; no row when the original or the queue does not exist
-- moves:   -> pending
-- locks:   none but the new rows
-- index:   job_pkey, job_payload_pkey, archived_job_pkey
with original as materialized (
    select tenant_id, queue_id, job_type_id, timeout_seconds, priority, max_attempts, version, arguments, headers,
           correlation_id
    from pgbroker.job
    cross join lateral (
        select version, arguments, headers, correlation_id
        from pgbroker.job_payload
        where job_id = job.id
        offset 0
    ) as payload
    where id = %(id)s::bigint
    union all
    select tenant_id, queue_id, job_type_id, timeout_seconds, priority, max_attempts, version, arguments, headers,
           correlation_id
    from pgbroker.archived_job
    where id = %(id)s::bigint
    limit 1
),
stored as (
    insert into pgbroker.job (
        tenant_id, queue_id, job_type_id, created_at, available_at, claim_order, timeout_seconds, state, priority,
        max_attempts
    )
    select
        tenant_id, queue.id, job_type_id, pgbroker.clock(), pgbroker.clock(),
        pgbroker.clock() - coalesce(%(priority)s::int, priority) * queue.ageing_seconds * interval '1 second',
        coalesce(timeout_seconds, %(timeout_seconds)s::int), 0, coalesce(%(priority)s::int, priority), max_attempts
    from original
    join pgbroker.queue as queue
        on case when %(queue)s::text is null then queue.id = original.queue_id else queue.name = %(queue)s::text end
    returning id
),
paid as (
    insert into pgbroker.job_payload (job_id, version, arguments, headers, correlation_id, created_by)
    select stored.id, coalesce(%(version)s::int, version), coalesce(%(arguments)s::jsonb, arguments), headers,
           correlation_id, %(actor)s::text
    from stored
    cross join original
)
select id
from stored
