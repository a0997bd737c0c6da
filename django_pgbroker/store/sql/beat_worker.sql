-- purpose: the heartbeat of one worker; it brings back what operators ask of it
-- params:  worker_id bigint, running_count int, wall_clock float8 (the worker's own epoch, to show its skew),
--          is_draining bool (for a signal or an order; the first time stays)
-- returns: whether to drain, whether to stop, the time as epoch float8; no row when the presence row is gone
-- moves:
-- locks:   the worker's own row
-- index:   worker_pkey
update pgbroker.worker
set heartbeat_at = pgbroker.clock(),
    running_count = %(running_count)s::int,
    clock_skew_seconds = %(wall_clock)s::float8 - extract(epoch from pgbroker.clock())::float8,
    draining_at = coalesce(draining_at, case when %(is_draining)s::bool then pgbroker.clock() end),
    stopped_at = null,
    stop_reason = null
where id = %(worker_id)s::bigint
returning drain_requested_at is not null, stop_requested_at is not null, extract(epoch from pgbroker.clock())::float8
