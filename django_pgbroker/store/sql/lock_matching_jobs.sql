-- purpose: hold the next live jobs that match a filter
-- params:  after, until bigint (ids: behind the one, up to the other), batch bigint, states smallint[],
--          tried boolean, queue, job_type, tenant text, created_after, created_before timestamptz (null: any)
-- returns: id, state, queue, tenant, job_type (names), priority
-- moves:
-- locks:   the jobs' rows by id, waiting for a claim or a verb that has them; what no longer matches then is left out
-- index:   job_pkey
select
    id,
    state,
    (select name from pgbroker.queue where queue.id = queue_id) as queue,
    (select name from pgbroker.tenant where tenant.id = tenant_id) as tenant,
    (select name from pgbroker.job_type where job_type.id = job_type_id) as job_type,
    priority
from pgbroker.job
where id > %(after)s::bigint
  and id <= %(until)s::bigint
  and state = any (%(states)s::smallint[])
  and (%(queue)s::text is null or queue_id = (select id from pgbroker.queue where name = %(queue)s::text))
  and (%(job_type)s::text is null or job_type_id = (select id from pgbroker.job_type where name = %(job_type)s::text))
  and (%(tenant)s::text is null or tenant_id = (select id from pgbroker.tenant where name = %(tenant)s::text))
  and (%(tried)s::boolean is null or (attempt > 0) = %(tried)s::boolean)
  and (%(created_after)s::timestamptz is null or created_at >= %(created_after)s::timestamptz)
  and (%(created_before)s::timestamptz is null or created_at < %(created_before)s::timestamptz)
order by id
limit %(batch)s::bigint
for update
