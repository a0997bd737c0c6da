-- purpose: store the newest progress of running jobs, and mark those that have rows to be cleaned up after them
-- params:  ids bigint[] (sorted, unique), and by the same position: tokens bigint[], dones float8[] (null: only mark),
--          totals float8[], stages text[]
-- returns: only the exceptions: id and 'busy' (ours, locked by another: try again) or 'stale' (the claim is no longer ours)
-- moves:
-- locks:   job rows by id, skipping rows that others hold; KEY SHARE, so that renewals and cancels pass, but for the rows
--          that are marked, once a job
-- index:   job_pkey
with held as materialized (
    select id, is_tracked, width_bucket(id, %(ids)s::bigint[]) as position
    from pgbroker.job
    where id = any (%(ids)s::bigint[])
      and state = 1
      and lease_token = (%(tokens)s::bigint[])[width_bucket(id, %(ids)s::bigint[])]
    order by id
    for key share skip locked
),
markable as materialized (
    select id
    from pgbroker.job
    where id = any (array(select id from held where not is_tracked))
    order by id
    for no key update skip locked
),
marked as (
    update pgbroker.job
    set is_tracked = true
    where id = any (array(select id from markable))
),
recordable as materialized (
    select id, position
    from held
    where is_tracked or id = any (array(select id from markable))
),
stored as (
    insert into pgbroker.job_progress (job_id, lease_token, done, total, stage, updated_at)
    select
        id, (%(tokens)s::bigint[])[position], (%(dones)s::float8[])[position], (%(totals)s::float8[])[position],
        (%(stages)s::text[])[position], pgbroker.clock()
    from recordable
    where (%(dones)s::float8[])[position] is not null
    on conflict (job_id) do update
    set lease_token = excluded.lease_token,
        done = excluded.done,
        total = excluded.total,
        stage = excluded.stage,
        updated_at = excluded.updated_at
)
select
    report.id,
    case
        when exists (
            select from pgbroker.job where job.id = report.id and job.lease_token = report.token and job.state = 1
        ) then 'busy'
        else 'stale'
    end
from unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) as report (id, token)
where (select count(*) from recordable) < cardinality(%(ids)s::bigint[])
  and not exists (select from recordable where recordable.id = report.id)
