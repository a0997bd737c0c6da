-- purpose: a worker says good-bye
-- params:  worker_id bigint, reason text
-- returns: nothing
-- moves:
-- locks:   the worker's own row
-- index:   worker_pkey
update pgbroker.worker
set stopped_at = pgbroker.clock(), running_count = 0, stop_reason = %(reason)s::text
where id = %(worker_id)s::bigint
