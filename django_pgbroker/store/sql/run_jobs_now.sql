-- purpose: make scheduled jobs due at once
-- params:  ids bigint[]
-- returns: id
-- moves:   scheduled -> pending
-- locks:   the jobs' rows, which the caller holds
-- index:   job_pkey
-- 'state = 2' would lure the planner into the index of all scheduled jobs.
update pgbroker.job as job
set state = 0,
    available_at = pgbroker.clock(),
    claim_order = pgbroker.clock()
        - priority * (select ageing_seconds from pgbroker.queue where queue.id = job.queue_id) * interval '1 second'
where id = any (%(ids)s::bigint[]) and state not in (0, 1, 3, 4)
returning id
