-- purpose: mark the workers that have been silent for five of their own heartbeats as stopped
-- params:  batch bigint
-- returns: id, name, silent for this many seconds
-- moves:
-- locks:   worker rows, longest silence first, skipping rows that their owner holds in a heartbeat
-- index:   worker_live
with silent as materialized (
    select id
    from pgbroker.worker
    where stopped_at is null
      and heartbeat_at < (select pgbroker.clock()) - 5 * heartbeat_seconds * interval '1 second'
    order by heartbeat_at
    limit %(batch)s::bigint
    for no key update skip locked
)
update pgbroker.worker
set stopped_at = pgbroker.clock(), stop_reason = 'lost'
where id = any (array(select id from silent))
returning id, name, extract(epoch from pgbroker.clock() - heartbeat_at)::float8
