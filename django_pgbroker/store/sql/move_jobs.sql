-- purpose: have jobs wait in another queue
-- params:  ids bigint[], queue text
-- returns: id; no row for a job that is there already, and none at all when there is no such queue
-- moves:
-- locks:   the jobs' rows, which the caller holds
-- index:   job_pkey
update pgbroker.job
set queue_id = (select id from pgbroker.queue where name = %(queue)s::text),
    claim_order = available_at
        - priority * (select ageing_seconds from pgbroker.queue where name = %(queue)s::text) * interval '1 second'
where id = any (%(ids)s::bigint[])
  and state <> 1
  and queue_id <> (select id from pgbroker.queue where name = %(queue)s::text)
returning id
