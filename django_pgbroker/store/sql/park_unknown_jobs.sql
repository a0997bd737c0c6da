-- purpose: move jobs of a type that no worker knows out of the head of their queue, so that claims need not wade through them
-- params:  batch bigint, head bigint (pending rows looked at per queue), declared text[] (names of job types that the code
--          of this process has: none of them is unknown, also where every worker leaves it out)
-- returns: job_type name, count
-- moves:   pending -> parked
-- locks:   job rows, by id, skipping rows that a claim holds
-- index:   job_claim
-- A type counts as known while a live worker takes it, and for a minute after: a restart of workers parks nothing. With
-- no live worker at all nothing is parked. parked_on holds the negated id of the type: limits and sequences have
-- positive keys, so no acknowledge wakes these rows, and the waking finds them by index.
with known as materialized (
    select distinct unnest(job_type_ids) as id
    from pgbroker.worker
    where stopped_at is null or stopped_at > (select pgbroker.clock()) - interval '1 minute'
    union
    select id
    from pgbroker.job_type
    where name = any (%(declared)s::text[])
),
unknown as materialized (
    select head.id
    from pgbroker.queue as queue
    cross join lateral (
        select id, job_type_id
        from pgbroker.job
        where queue_id = queue.id and state = 0
        order by claim_order, id
        limit %(head)s::bigint
    ) as head
    where exists (select 1 from pgbroker.worker where stopped_at is null)
      and head.job_type_id not in (select id from known)
    limit %(batch)s::bigint
),
free as materialized (
    select id
    from pgbroker.job
    where id = any (array(select id from unknown)) and state = 0
    order by id
    for no key update skip locked
),
parked as (
    update pgbroker.job
    set state = 4, parked_reason = 4, parked_on = -job_type_id
    where id = any (array(select id from free))
    returning job_type_id
)
select coalesce(job_type.name, '#' || counted.job_type_id), counted.count
from (select job_type_id, count(*) from parked group by job_type_id) as counted
left join pgbroker.job_type as job_type on job_type.id = counted.job_type_id
order by 1
