-- purpose: name the job types that wait in a queue where no live worker takes them, though one does in another queue;
--          nothing while no worker lives at all
-- params:  batch bigint (pending rows looked at in the head of each queue), lost_after float8 (heartbeats)
-- returns: queue, job_type name, waiting (among the rows looked at)
-- moves:
-- locks:   none
-- index:   job_claim
-- A paused queue waits for its pause. A type that nobody takes anywhere is one of find_unknown_types.
with live as materialized (
    select queues, job_type_ids
    from pgbroker.worker
    where stopped_at is null
      and heartbeat_at > (select pgbroker.clock()) - heartbeat_seconds * %(lost_after)s::float8 * interval '1 second'
),
pending as materialized (
    select queue.name as queue, head.job_type_id, count(*) as waiting
    from pgbroker.queue
    cross join lateral (
        select job_type_id
        from pgbroker.job
        where queue_id = queue.id and state = 0
        order by claim_order, id
        limit %(batch)s::bigint
    ) as head
    where queue.paused_at is null and exists (select 1 from live)
    group by queue.name, head.job_type_id
)
select pending.queue, job_type.name, pending.waiting
from pending
join pgbroker.job_type on job_type.id = pending.job_type_id
where exists (select 1 from live where pending.job_type_id = any (live.job_type_ids))
  and not exists (
      select 1 from live where pending.job_type_id = any (live.job_type_ids) and live.queues ? pending.queue
  )
order by pending.waiting desc, pending.queue, job_type.name
