-- purpose: the queues that have scheduled jobs whose time has come
-- params:
-- returns: id, name
-- moves:
-- locks:   none
-- index:   job_due
select queue.id, queue.name
from pgbroker.queue as queue
cross join lateral (
    select 1
    from pgbroker.job
    where queue_id = queue.id and state = 2 and available_at <= (select pgbroker.clock())
    limit 1
) as due
order by queue.id
