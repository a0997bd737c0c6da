-- purpose: what one worker holds according to the database, after its commit was in doubt
-- params:  worker_id bigint
-- returns: id, lease_token
-- moves:
-- locks:   none
-- index:   job_running
select id, lease_token
from pgbroker.job
where state = 1 and worker_id = %(worker_id)s::bigint
order by id
