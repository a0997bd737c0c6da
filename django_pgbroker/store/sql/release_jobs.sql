-- purpose: make parked jobs pending, whatever they were parked for
-- params:  ids bigint[]
-- returns: id
-- moves:   parked -> pending
-- locks:   the jobs' rows, which the caller holds
-- index:   job_pkey
update pgbroker.job
set state = 0, parked_reason = null, parked_on = null
where id = any (%(ids)s::bigint[]) and state = 4
returning id
