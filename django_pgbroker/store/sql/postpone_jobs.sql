-- purpose: have jobs start later; one that expires before that stays as it is
-- params:  ids bigint[], run_at timestamptz
-- returns: id
-- moves:   pending -> scheduled
-- locks:   the jobs' rows, which the caller holds
-- index:   job_pkey
update pgbroker.job as job
set state = 2,
    available_at = %(run_at)s::timestamptz,
    claim_order = %(run_at)s::timestamptz
        - priority * (select ageing_seconds from pgbroker.queue where queue.id = job.queue_id) * interval '1 second'
where id = any (%(ids)s::bigint[]) and state in (0, 2) and expires_at > %(run_at)s::timestamptz
returning id
