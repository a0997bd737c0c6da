-- purpose: all that a job remembers from earlier attempts: its finished steps and its cursor
-- params:  id bigint
-- returns: name (empty: the cursor), result (json text)
-- moves:
-- locks:   none
-- index:   job_step_pkey
select name, result::text
from pgbroker.job_step
where job_id = %(id)s::bigint
