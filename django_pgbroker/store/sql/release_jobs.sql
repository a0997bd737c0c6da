-- purpose: make parked jobs pending, whatever they were parked for
-- params:  ids bigint[]
-- returns: id
-- moves:   parked -> pending
-- locks:   the jobs' rows, which the caller holds
-- index:   job_pkey
-- 'state = 4' would lure the planner into the index of all parked jobs.
update pgbroker.job
set state = 0, parked_reason = null, parked_on = null
where id = any (%(ids)s::bigint[]) and state > 3
returning id
