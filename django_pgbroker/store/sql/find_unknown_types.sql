-- purpose: name the job types with waiting work that no live worker takes, for it does not know them or leaves them out;
--          nothing while no worker lives at all
-- params:  batch bigint (rows looked at: pending ones in the head of each queue, parked ones of each type),
--          lost_after float8 (heartbeats)
-- returns: name, waiting (among the rows looked at)
-- moves:
-- locks:   none
-- index:   job_claim, job_parked
-- A duty parks such jobs under the negated id of their type, so they are found by index; those it has not parked yet
-- are in the head of their queue, or not in anybody's way.
with live as materialized (
    select job_type_ids
    from pgbroker.worker
    where stopped_at is null
      and heartbeat_at > (select pgbroker.clock()) - heartbeat_seconds * %(lost_after)s::float8 * interval '1 second'
),
pending as materialized (
    select head.job_type_id as id, count(*) as waiting
    from pgbroker.queue
    cross join lateral (
        select job_type_id
        from pgbroker.job
        where queue_id = queue.id and state = 0
        order by claim_order, id
        limit %(batch)s::bigint
    ) as head
    where exists (select 1 from live)
    group by head.job_type_id
),
unknown as materialized (
    select id, name
    from pgbroker.job_type
    where exists (select 1 from live)
      and not exists (select 1 from live where job_type.id = any (live.job_type_ids))
),
counted as materialized (
    select unknown.name, coalesce(pending.waiting, 0) + parked.waiting as waiting
    from unknown
    left join pending on pending.id = unknown.id
    cross join lateral (
        select count(*) as waiting
        from (
            select 1
            from pgbroker.job
            where state = 4 and parked_on = -unknown.id
            limit %(batch)s::bigint
        ) as row
    ) as parked
)
select name, waiting
from counted
where waiting > 0
order by waiting desc, name
