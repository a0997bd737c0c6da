-- purpose: hold some live jobs by their ids, whatever their states
-- params:  ids bigint[]
-- returns: id, state, queue, tenant, job_type (names), priority
-- moves:
-- locks:   the jobs' rows by id, waiting for a claim or a verb that has them
-- index:   job_pkey
select
    id,
    state,
    (select name from pgbroker.queue where queue.id = queue_id) as queue,
    (select name from pgbroker.tenant where tenant.id = tenant_id) as tenant,
    (select name from pgbroker.job_type where job_type.id = job_type_id) as job_type,
    priority
from pgbroker.job
where id = any (%(ids)s::bigint[])
order by id
for update
