-- purpose: hold the next finished jobs that match a filter
-- params:  after, until bigint (ids: behind the one, up to the other), batch bigint, states smallint[],
--          tried boolean, queue, job_type, tenant, error_class, error text, created_after, created_before,
--          finished_after, finished_before timestamptz (null: any; error is contained in the message, in whatever case)
-- returns: id, state, queue, tenant, job_type (names), priority
-- moves:
-- locks:   the jobs' rows by id, waiting for a verb that has them; what no longer matches then is left out
-- index:   archived_job_pkey
select
    id,
    state,
    (select name from pgbroker.queue where queue.id = queue_id) as queue,
    (select name from pgbroker.tenant where tenant.id = tenant_id) as tenant,
    (select name from pgbroker.job_type where job_type.id = job_type_id) as job_type,
    priority
from pgbroker.archived_job
where id > %(after)s::bigint
  and id <= %(until)s::bigint
  and state = any (%(states)s::smallint[])
  and (%(queue)s::text is null or queue_id = (select id from pgbroker.queue where name = %(queue)s::text))
  and (%(job_type)s::text is null or job_type_id = (select id from pgbroker.job_type where name = %(job_type)s::text))
  and (%(tenant)s::text is null or tenant_id = (select id from pgbroker.tenant where name = %(tenant)s::text))
  and (%(tried)s::boolean is null or (attempt > 0) = %(tried)s::boolean)
  and (%(created_after)s::timestamptz is null or created_at >= %(created_after)s::timestamptz)
  and (%(created_before)s::timestamptz is null or created_at < %(created_before)s::timestamptz)
  and (%(finished_after)s::timestamptz is null or finished_at >= %(finished_after)s::timestamptz)
  and (%(finished_before)s::timestamptz is null or finished_at < %(finished_before)s::timestamptz)
  and (
      %(error_class)s::text is null
      or error_class = %(error_class)s::text
      or right(error_class, length(%(error_class)s::text) + 1) = concat('.', %(error_class)s::text)
  )
  and (%(error)s::text is null or position(lower(%(error)s::text) in lower(error_message)) > 0)
order by id
limit %(batch)s::bigint
for update
