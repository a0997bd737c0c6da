-- purpose: the job types of pending jobs that a worker leaves behind when its queues hold nothing for it (--until-empty)
-- params:  queue_id bigint
-- returns: names of job types among the first 1,000 pending jobs
-- moves:
-- locks:   none
-- index:   job_claim
select distinct (select name from pgbroker.job_type where job_type.id = pending.job_type_id)
from (
    select job_type_id
    from pgbroker.job
    where queue_id = %(queue_id)s::bigint and state = 0
    order by claim_order, id
    limit 1000
) as pending
