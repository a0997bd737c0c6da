-- purpose: bring back jobs that were parked for an unknown type, once a live worker knows it
-- params:  batch bigint
-- returns: queue name, count
-- moves:   parked -> pending
-- locks:   job rows, skipping locked ones
-- index:   job_parked
with known as materialized (
    select distinct -unnest(job_type_ids) as key
    from pgbroker.worker
    where stopped_at is null
),
free as materialized (
    select id
    from pgbroker.job
    where state = 4 and parked_on = any (array(select key from known)) and parked_reason = 4
    limit %(batch)s::bigint
    for no key update skip locked
),
woken as (
    update pgbroker.job
    set state = 0, parked_reason = null, parked_on = null
    where id = any (array(select id from free))
    returning queue_id
)
select coalesce(queue.name, '#' || counted.queue_id), counted.count
from (select queue_id, count(*) from woken group by queue_id) as counted
left join pgbroker.queue as queue on queue.id = counted.queue_id
order by 1
