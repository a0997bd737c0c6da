-- purpose: archive the jobs whose latest start has passed before a worker claimed them
-- params:  batch bigint
-- returns: id
-- moves:   pending | scheduled | blocked | parked -> expired
-- locks:   job rows, oldest expiry first, skipping rows that a claim, a promotion or a producer of edges holds
-- index:   job_expiring
with overdue as materialized (
    select id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, priority, attempt,
           max_attempts, deaths, interruptions, is_tracked, timeout_seconds
    from pgbroker.job
    where state <> 1 and expires_at < 'infinity' and expires_at <= (select pgbroker.clock())
    order by expires_at, id
    limit %(batch)s::bigint
    for update skip locked
),
removed as (
    delete from pgbroker.job
    where id = any (array(select id from overdue))
),
removed_payload as (
    delete from pgbroker.job_payload
    where job_id = any (array(select id from overdue))
),
progress as (
    delete from pgbroker.job_progress
    where job_id = any (array(select id from overdue where is_tracked))
    returning job_id, done, total, stage
),
removed_steps as (
    delete from pgbroker.job_step
    where job_id = any (array(select id from overdue where is_tracked))
)
insert into pgbroker.archived_job (
    id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, finished_at, state, priority, attempt,
    max_attempts, deaths, interruptions, version, arguments, headers, correlation_id, created_by, reason,
    progress, timeout_seconds
)
select overdue.id, overdue.tenant_id, overdue.queue_id, overdue.job_type_id, overdue.run_group_id, overdue.created_at,
       overdue.available_at, pgbroker.clock(), 12, overdue.priority, overdue.attempt, overdue.max_attempts,
       overdue.deaths, overdue.interruptions, coalesce(payload.version, 1), coalesce(payload.arguments, '{}'),
       payload.headers, payload.correlation_id, payload.created_by,
       case when overdue.attempt = 0 then 'not started before it expired' else 'not retried before it expired' end,
       case when progress.job_id is not null then jsonb_build_object(
           'done', progress.done, 'total', progress.total, 'stage', progress.stage
       ) end,
       overdue.timeout_seconds
from overdue
-- A job whose payload is missing is archived too: nothing may leave the live table without a trace.
left join lateral (
    select version, arguments, headers, correlation_id, created_by
    from pgbroker.job_payload
    where job_id = overdue.id
    offset 0
) as payload on true
left join progress on progress.job_id = overdue.id
returning id
