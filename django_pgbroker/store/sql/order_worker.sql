-- purpose: write down what an operator asks of a worker, whose row is held; its next heartbeat brings it back
-- params:  worker_id bigint, drain, stop bool (the first time stays), concurrency int (or null), paused_queues jsonb
-- returns: nothing
-- moves:
-- locks:   the worker's row
-- index:   worker_pkey
update pgbroker.worker
set drain_requested_at = coalesce(drain_requested_at, case when %(drain)s::bool then pgbroker.clock() end),
    stop_requested_at = coalesce(stop_requested_at, case when %(stop)s::bool then pgbroker.clock() end),
    ordered_concurrency = %(concurrency)s::int,
    paused_queues = %(paused_queues)s::jsonb
where id = %(worker_id)s::bigint;
