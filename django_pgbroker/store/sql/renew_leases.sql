-- purpose: renew the leases of jobs that one worker still holds, and mark those that have begun
-- params:  ids bigint[] (sorted, unique), and by the same position: tokens bigint[], begun boolean[]; lease_seconds float8
-- returns: only the exceptions: id and 'busy' (ours, locked by another: seen again next time), 'stale', or 'cancelled' (renewed,
--          but somebody wants the job cancelled)
-- moves:
-- locks:   job rows by id, skipping rows that others hold (one locked row must not stall all leases)
-- index:   job_pkey
with held as materialized (
    select id, cancel_requested_at
    from pgbroker.job
    where id = any (%(ids)s::bigint[])
      and state = 1
      and lease_token = (%(tokens)s::bigint[])[width_bucket(id, %(ids)s::bigint[])]
    order by id
    for no key update skip locked
),
renewed as (
    update pgbroker.job
    set lease_expires_at = pgbroker.clock() + %(lease_seconds)s::float8 * interval '1 second',
        started_at = coalesce(
            started_at,
            case when (%(begun)s::boolean[])[width_bucket(id, %(ids)s::bigint[])] then pgbroker.clock() end
        )
    where id = any (array(select id from held))
)
select
    claim.id,
    case
        when exists (
            select from pgbroker.job where job.id = claim.id and job.lease_token = claim.token and job.state = 1
        ) then 'busy'
        else 'stale'
    end
from unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) as claim (id, token)
where (select count(*) from held) < cardinality(%(ids)s::bigint[])
  and not exists (select from held where held.id = claim.id)
union all
select id, 'cancelled' from held where cancel_requested_at is not null
