-- purpose: end the stay of dead letters: cancelled, they go with the history when it is old
-- params:  ids bigint[], actor text, reason text (or null)
-- returns: id
-- moves:   dead -> cancelled
-- locks:   the archived rows, which the caller holds
-- index:   archived_job_pkey
with discarded as materialized (
    delete from pgbroker.archived_job
    where id = any (%(ids)s::bigint[]) and state = 13
    returning *
),
removed_steps as (
    delete from pgbroker.job_step
    where job_id = any (array(select id from discarded))
)
insert into pgbroker.archived_job (
    id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, finished_at, fingerprint, state,
    priority, attempt, max_attempts, deaths, interruptions, version, arguments, headers, result, correlation_id,
    created_by, reason, error_class, error_message, progress, timeout_seconds
)
select
    id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, pgbroker.clock(), fingerprint, 11,
    priority, attempt, max_attempts, deaths, interruptions, version, arguments, headers, result, correlation_id,
    created_by, concat_ws(': ', concat('discarded by ', %(actor)s::text), %(reason)s::text), error_class, error_message,
    progress, timeout_seconds
from discarded
returning id
