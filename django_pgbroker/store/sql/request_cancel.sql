-- purpose: mark a running job, so that its worker stops it and its acknowledge ends it as cancelled; record who did it
-- params:  id bigint, actor text, source text, reason text (or null)
-- returns: whether this is the first such request; no row when the job does not run
-- moves:
-- locks:   the job's row
-- index:   job_pkey
with target as materialized (
    select id, tenant_id, cancel_requested_at is null as is_first
    from pgbroker.job
    where id = %(id)s::bigint and state = 1
    for no key update
),
marked as (
    update pgbroker.job
    set cancel_requested_at = pgbroker.clock(), cancel_requested_by = %(actor)s::text, cancel_reason = %(reason)s::text
    where id = any (array(select id from target where is_first))
),
audited as (
    insert into pgbroker.audit_entry (tenant_id, actor, source, action, target, reason, before, after)
    select tenant_id, %(actor)s::text, %(source)s::text, 'job.cancel', jsonb_build_object('job', id), %(reason)s::text,
           jsonb_build_object('state', 1), jsonb_build_object('state', 1, 'cancel', 'requested')
    from target
    where is_first
)
select is_first from target
