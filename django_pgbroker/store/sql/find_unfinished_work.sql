-- purpose: whether a queue still holds jobs that this worker could run now or later (for --until-empty); the pending
--          ones of a paused queue are none
-- params:  queue_id bigint, job_type_ids bigint[]
-- returns: one boolean
-- moves:
-- locks:   none
-- index:   job_claim
select
    exists (
        select from pgbroker.job
        where queue_id = %(queue_id)s::bigint and state = 0 and job_type_id = any (%(job_type_ids)s::bigint[])
          and (select paused_at is null from pgbroker.queue where id = %(queue_id)s::bigint)
    )
    or exists (
        select from pgbroker.job
        where queue_id = %(queue_id)s::bigint and state = 2 and job_type_id = any (%(job_type_ids)s::bigint[])
    )
    or exists (
        select from pgbroker.job
        where queue_id = %(queue_id)s::bigint and state = 1 and job_type_id = any (%(job_type_ids)s::bigint[])
    )
