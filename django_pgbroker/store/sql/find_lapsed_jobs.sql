-- purpose: running jobs whose lease has lapsed, for the reclaimer; whether it still has is asked again under the lock
-- params:  batch bigint
-- returns: id, lease_token, attempt, max_attempts, whether it had begun, worker_id, queue name, job type name
-- moves:
-- locks:   none
-- index:   job_running
select id, lease_token, attempt, max_attempts, started_at is not null, worker_id,
    (select name from pgbroker.queue where queue.id = job.queue_id),
    (select name from pgbroker.job_type where job_type.id = job.job_type_id)
from pgbroker.job
where state = 1 and lease_expires_at < pgbroker.clock()
order by id
limit %(batch)s::bigint
