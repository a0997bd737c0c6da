-- purpose: send finished jobs back to their queues, as the same jobs
-- params:  ids bigint[], keep_attempts boolean (one more than were used; else all of them anew),
--          timeout_seconds int (of a job that was archived before its own was kept)
-- returns: id
-- moves:   dead | cancelled | expired -> pending
-- locks:   the archived rows, which the caller holds
-- index:   archived_job_pkey
-- Its expiry and deadline are gone: they have passed, or are of another life.
with taken as materialized (
    delete from pgbroker.archived_job
    where id = any (%(ids)s::bigint[]) and state in (11, 12, 13)
    returning id, tenant_id, queue_id, job_type_id, run_group_id, created_at, timeout_seconds, priority, attempt,
              max_attempts, deaths, interruptions, version, arguments, headers, correlation_id, created_by
),
paid as (
    insert into pgbroker.job_payload (job_id, version, arguments, headers, correlation_id, created_by)
    select id, version, arguments, headers, correlation_id, created_by
    from taken
)
insert into pgbroker.job (
    id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, claim_order, timeout_seconds, state,
    priority, attempt, max_attempts, deaths, interruptions, is_tracked
)
overriding system value
select
    id, tenant_id, queue_id, job_type_id, run_group_id, created_at, pgbroker.clock(),
    pgbroker.clock()
        - priority * (select ageing_seconds from pgbroker.queue where queue.id = taken.queue_id) * interval '1 second',
    coalesce(timeout_seconds, %(timeout_seconds)s::int), 0, priority,
    case when %(keep_attempts)s::boolean then least(attempt, 999) else 0 end,
    case when %(keep_attempts)s::boolean then greatest(max_attempts, least(attempt, 999) + 1) else max_attempts end,
    case when %(keep_attempts)s::boolean then deaths else 0 end,
    case when %(keep_attempts)s::boolean then interruptions else 0 end,
    exists (select from pgbroker.job_step where job_step.job_id = taken.id)
from taken
returning id
