-- purpose: write bounded counts and the oldest pending time of the queues whose sample is old
-- params:  batch bigint (queues), bound bigint (rows counted per state), head bigint (rows looked at for the age),
--          max_age_seconds float8 (samples younger than this are left alone)
-- returns: nothing; the count of queues is the answer
-- moves:
-- locks:   queue rows after all is counted, by id, skipping rows that an operator holds
-- index:   job_claim, job_due, job_running, job_blocked, job_parked
-- A count that reaches the bound means "at least". Pending and scheduled rows are counted queue by queue. Running,
-- blocked and parked ones have no index by queue: the first rows of all queues together are counted, up to the bound.
-- The age is that of the oldest row among the head of the claim order: exact while a queue uses one priority, else off
-- by the ageing of the priorities in use at most, because that order lets nothing wait longer.
with stale as materialized (
    select id
    from pgbroker.queue
    where sampled_at is null
       or sampled_at <= (select pgbroker.clock()) - %(max_age_seconds)s::float8 * interval '1 second'
    order by id
    limit %(batch)s::bigint
),
spread as materialized (
    select queue_id,
           count(*) filter (where state = 1) as running,
           count(*) filter (where state = 3) as blocked,
           count(*) filter (where state = 4) as parked
    from (
        (select queue_id, state from pgbroker.job where state = 1 order by id limit %(bound)s::bigint)
        union all
        (select queue_id, state from pgbroker.job where state = 3 order by id limit %(bound)s::bigint)
        union all
        (select queue_id, state from pgbroker.job where state = 4 order by parked_on, claim_order, id limit %(bound)s::bigint)
    ) as seen
    where exists (select 1 from stale)
    group by queue_id
),
sample as materialized (
    select stale.id, pending.count as pending, scheduled.count as scheduled, head.oldest,
           coalesce(spread.running, 0) as running, coalesce(spread.blocked, 0) as blocked,
           coalesce(spread.parked, 0) as parked
    from stale
    cross join lateral (
        select count(*)
        from (select 1 from pgbroker.job where queue_id = stale.id and state = 0 order by claim_order limit %(bound)s::bigint) as r
    ) as pending
    cross join lateral (
        select count(*)
        from (select 1 from pgbroker.job where queue_id = stale.id and state = 2 order by available_at limit %(bound)s::bigint) as r
    ) as scheduled
    cross join lateral (
        select min(available_at) as oldest
        from (
            select available_at
            from pgbroker.job
            where queue_id = stale.id and state = 0
            order by claim_order
            limit %(head)s::bigint
        ) as r
    ) as head
    left join spread on spread.queue_id = stale.id
),
free as materialized (
    select id
    from pgbroker.queue
    where id = any (array(select id from sample))
    order by id
    for no key update skip locked
)
update pgbroker.queue as queue
set sampled_at = pgbroker.clock(),
    pending_count = sample.pending,
    scheduled_count = sample.scheduled,
    blocked_count = sample.blocked,
    parked_count = sample.parked,
    running_count = sample.running,
    oldest_pending_at = sample.oldest
from sample
where queue.id = sample.id and queue.id = any (array(select id from free))
