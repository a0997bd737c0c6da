-- purpose: take one pending job by its id, in a paused queue too, with a lease and a fencing token; it begins at once
-- params:  id bigint, lease_seconds float8, worker_id bigint
-- returns: a ClaimedJob; no row when it is not pending, has expired, waits for limits or for its turn, or is locked
-- moves:   pending -> running
-- locks:   the job row, skipped if another holds it
-- index:   job_pkey
with candidate as materialized (
    select id
    from pgbroker.job
    where id = %(id)s::bigint
      and state = 0
      and expires_at > pgbroker.clock()
      and limit_ids is null
      and sequence_id is null
    for no key update skip locked
),
claimed as (
    update pgbroker.job as job
    set state = 1,
        attempt = attempt + 1,
        lease_token = nextval('pgbroker.lease_token_seq'),
        leased_at = pgbroker.clock(),
        lease_expires_at = pgbroker.clock() + %(lease_seconds)s::float8 * interval '1 second',
        started_at = pgbroker.clock(),
        worker_id = %(worker_id)s::bigint
    where id = any (array(select id from candidate))
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
    0 as left_behind
from claimed
left join lateral (
    select version, arguments::text, headers::text, correlation_id
    from pgbroker.job_payload
    where job_id = claimed.id
    offset 0
) as payload on true
