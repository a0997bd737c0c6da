-- purpose: remember the result of one finished step of a running job, or its cursor (the empty name)
-- params:  id bigint, token bigint, name text, result text (JSON)
-- returns: job_id; no row when the claim is no longer ours, and then nothing was written
-- moves:
-- locks:   KEY SHARE on the job row to the end of the caller's transaction: renewals and cancels pass, while an
--          acknowledge or a reclaim leaves the job until what the step did is committed or rolled back; waits for one
--          that is under way
-- index:   job_running
with held as materialized (
    select id
    from pgbroker.job
    where id = %(id)s::bigint and state = 1 and lease_token = %(token)s::bigint
    for key share
)
insert into pgbroker.job_step as step (job_id, name, lease_token, result, finished_at)
select id, %(name)s::text, %(token)s::bigint, %(result)s::text::jsonb, pgbroker.clock()
from held
on conflict (job_id, name) do update
set lease_token = excluded.lease_token,
    result = excluded.result,
    finished_at = excluded.finished_at
returning job_id
