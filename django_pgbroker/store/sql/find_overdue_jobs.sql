-- purpose: running jobs whose time-out has long passed although their lease is kept, whoever holds them
-- params:  batch bigint, margin float8 (seconds beyond the time-out)
-- returns: id, lease_token, attempt, max_attempts, worker_id, queue name, job type name, seconds beyond the time-out
-- moves:
-- locks:   none
-- index:   job_running
select id, lease_token, attempt, max_attempts, worker_id,
    (select name from pgbroker.queue where queue.id = job.queue_id),
    (select name from pgbroker.job_type where job_type.id = job.job_type_id),
    extract(epoch from pgbroker.clock() - started_at)::float8 - timeout_seconds
from pgbroker.job
where state = 1
  and started_at < pgbroker.clock() - (timeout_seconds + %(margin)s::float8) * interval '1 second'
order by id
limit %(batch)s::bigint
