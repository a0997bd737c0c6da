-- purpose: the heartbeat of one worker; it brings back what operators ask of it
-- params:  worker_id bigint, running_count int, concurrency int, wall_clock float8 (the worker's own epoch, to show its
--          skew), is_draining bool (for a signal or an order; the first time stays)
-- returns: whether to drain, whether to stop, the time as epoch float8, how many handlers are to run at once (null: as at
--          its start), the names of queues to leave as a JSON array; no row when the presence row is gone, or when an
--          operator who gives an order holds it
-- moves:
-- locks:   the worker's own row, unless it is held: an operator's open transaction must not cost the worker its leases
-- index:   worker_pkey
update pgbroker.worker
set heartbeat_at = pgbroker.clock(),
    running_count = %(running_count)s::int,
    concurrency = %(concurrency)s::int,
    clock_skew_seconds = %(wall_clock)s::float8 - extract(epoch from pgbroker.clock())::float8,
    draining_at = coalesce(draining_at, case when %(is_draining)s::bool then pgbroker.clock() end),
    stopped_at = null,
    stop_reason = null
where id = (select id from pgbroker.worker where id = %(worker_id)s::bigint for no key update skip locked)
returning drain_requested_at is not null, stop_requested_at is not null, extract(epoch from pgbroker.clock())::float8,
    ordered_concurrency, paused_queues
