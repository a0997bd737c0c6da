-- purpose: archive a job that has not begun as cancelled, and record who did it
-- params:  id bigint, actor text, source text, reason text (or null)
-- returns: id; no row when the job runs, has finished or does not exist
-- moves:   pending | scheduled | blocked | parked -> cancelled
-- locks:   the job's row
-- index:   job_pkey
with target as materialized (
    select id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, state, priority, attempt,
           max_attempts, deaths, interruptions, is_tracked
    from pgbroker.job
    where id = %(id)s::bigint and state <> 1
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
),
audited as (
    insert into pgbroker.audit_entry (tenant_id, actor, source, action, target, reason, before, after)
    select tenant_id, %(actor)s::text, %(source)s::text, 'job.cancel', jsonb_build_object('job', id), %(reason)s::text,
           jsonb_build_object('state', state), jsonb_build_object('state', 11)
    from target
)
insert into pgbroker.archived_job (
    id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, finished_at, state, priority, attempt,
    max_attempts, deaths, interruptions, version, arguments, headers, correlation_id, created_by, reason,
    progress
)
select target.id, target.tenant_id, target.queue_id, target.job_type_id, target.run_group_id, target.created_at,
       target.available_at, pgbroker.clock(), 11, target.priority, target.attempt, target.max_attempts, target.deaths,
       target.interruptions, coalesce(payload.version, 1), coalesce(payload.arguments, '{}'), payload.headers,
       payload.correlation_id, payload.created_by,
       concat_ws(': ', concat('cancelled by ', %(actor)s::text), %(reason)s::text),
       case when progress.job_id is not null then jsonb_build_object(
           'done', progress.done, 'total', progress.total, 'stage', progress.stage
       ) end
from target
left join lateral (
    select version, arguments, headers, correlation_id, created_by
    from pgbroker.job_payload
    where job_id = target.id
    offset 0
) as payload on true
left join progress on progress.job_id = target.id
returning id
