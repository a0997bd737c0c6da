-- purpose: give jobs that wait another priority
-- params:  ids bigint[], priority int
-- returns: id; no row for a job that has this priority already
-- moves:
-- locks:   the jobs' rows, which the caller holds
-- index:   job_pkey
update pgbroker.job as job
set priority = %(priority)s::int,
    claim_order = available_at
        - %(priority)s::int * (select ageing_seconds from pgbroker.queue where queue.id = job.queue_id) * interval '1 second'
where id = any (%(ids)s::bigint[]) and state <> 1 and priority <> %(priority)s::int
returning id
