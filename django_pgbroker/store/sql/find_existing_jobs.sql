-- purpose: which of some ids are jobs, live or finished, in one snapshot
-- params:  ids bigint[]
-- returns: id
-- moves:
-- locks:   none
-- index:   job_pkey, archived_job_pkey
select id
from pgbroker.job
where id = any (%(ids)s::bigint[])
union all
select id
from pgbroker.archived_job
where id = any (%(ids)s::bigint[])
