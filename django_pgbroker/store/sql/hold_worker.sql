-- purpose: keep the row of a worker, to give it an order; its heartbeats pass the row by meanwhile
-- params:  worker_id bigint
-- returns: its name, why it has ended (null: it runs), the names of its queues (JSON object or array), whether it is to
--          drain, whether it is to stop, how many handlers are to run at once (null: as at its start), the queues it is to
--          leave (JSON array); no row when it does not exist
-- moves:
-- locks:   the worker's row
-- index:   worker_pkey
select
    name, case when stopped_at is not null then coalesce(stop_reason, 'stopped') end, queues,
    drain_requested_at is not null, stop_requested_at is not null, ordered_concurrency, paused_queues
from pgbroker.worker
where id = %(worker_id)s::bigint
for no key update;
