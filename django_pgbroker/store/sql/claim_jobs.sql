-- purpose: take up to a limit of pending jobs of one queue, each with a lease and a fencing token of its own
-- params:  queue_id bigint, job_type_ids bigint[] (types this worker knows), floor float8 (epoch of the lowest claim_order
--          to look at), batch bigint, begin bigint (how many begin at once; a job whose lease has lapsed before is taken
--          only as one of these), lease_seconds float8, worker_id bigint
-- returns: a ClaimedJob a row, in no order
-- moves:   pending -> running
-- locks:   job rows in claim order, skipping rows that others hold; nothing is waited for
-- index:   job_claim
with candidate as materialized (
    select id, claim_order, lapses
    from pgbroker.job
    where queue_id = %(queue_id)s::bigint
      and state = 0
      and claim_order >= to_timestamp(%(floor)s::float8)
      and expires_at > pgbroker.clock()
      and job_type_id = any (%(job_type_ids)s::bigint[])
      and limit_ids is null
      and sequence_id is null
      and (select paused_at is null from pgbroker.queue where id = %(queue_id)s::bigint)
    order by claim_order, id
    limit %(batch)s::bigint
    for no key update skip locked
),
ranked as materialized (
    select id, lapses, row_number() over (order by lapses > 0 desc, claim_order, id) as rank
    from candidate
),
claimed as (
    update pgbroker.job as job
    set state = 1,
        attempt = attempt + 1,
        lease_token = nextval('pgbroker.lease_token_seq'),
        leased_at = pgbroker.clock(),
        lease_expires_at = pgbroker.clock() + %(lease_seconds)s::float8 * interval '1 second',
        started_at = case
            when id = any (array(select id from ranked where rank <= %(begin)s::bigint)) then pgbroker.clock()
        end,
        worker_id = %(worker_id)s::bigint
    where id = any (array(select id from ranked where lapses = 0 or rank <= %(begin)s::bigint))
    returning id, lease_token, job_type_id, tenant_id, queue_id, attempt, max_attempts, priority, timeout_seconds, interruptions,
        extract(epoch from claim_order)::float8 as claim_order, extract(epoch from deadline_at)::float8 as deadline_at,
        started_at is not null as has_begun
)
select
    claimed.*,
    payload.version,
    payload.arguments,
    payload.headers,
    payload.correlation_id,
    extract(epoch from clock_timestamp() - pgbroker.clock())::float8 as claim_seconds,
    (select count(*) from ranked where lapses > 0 and rank > %(begin)s::bigint) as left_behind
from claimed
left join lateral (
    select version, arguments::text, headers::text, correlation_id
    from pgbroker.job_payload
    where job_id = claimed.id
    offset 0
) as payload on true
