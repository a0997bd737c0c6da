-- purpose: archive jobs that have not begun as cancelled
-- params:  ids bigint[], actor text, reason text (or null)
-- returns: id; no row for a job that runs, has finished or does not exist
-- moves:   pending | scheduled | blocked | parked -> cancelled
-- locks:   the jobs' rows by id
-- index:   job_pkey
with target as materialized (
    select id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, state, priority, attempt,
           max_attempts, deaths, interruptions, is_tracked, timeout_seconds
    from pgbroker.job
    where id = any (%(ids)s::bigint[]) and state <> 1
    order by id
    for update
),
removed as (
    delete from pgbroker.job
    where id = any (array(select id from target))
),
removed_payload as (
    delete from pgbroker.job_payload
    where job_id = any (array(select id from target))
),
progress as (
    delete from pgbroker.job_progress
    where job_id = any (array(select id from target where is_tracked))
    returning job_id, done, total, stage
),
removed_steps as (
    delete from pgbroker.job_step
    where job_id = any (array(select id from target where is_tracked))
)
insert into pgbroker.archived_job (
    id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, finished_at, state, priority, attempt,
    max_attempts, deaths, interruptions, version, arguments, headers, correlation_id, created_by, reason,
    progress, timeout_seconds
)
select target.id, target.tenant_id, target.queue_id, target.job_type_id, target.run_group_id, target.created_at,
       target.available_at, pgbroker.clock(), 11, target.priority, target.attempt, target.max_attempts, target.deaths,
       target.interruptions, coalesce(payload.version, 1), coalesce(payload.arguments, '{}'), payload.headers,
       payload.correlation_id, payload.created_by,
       concat_ws(': ', concat('cancelled by ', %(actor)s::text), %(reason)s::text),
       case when progress.job_id is not null then jsonb_build_object(
           'done', progress.done, 'total', progress.total, 'stage', progress.stage
       ) end,
       target.timeout_seconds
from target
left join lateral (
    select version, arguments, headers, correlation_id, created_by
    from pgbroker.job_payload
    where job_id = target.id
    offset 0
) as payload on true
left join progress on progress.job_id = target.id
returning id
