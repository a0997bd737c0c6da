-- purpose: where a bulk verb ends: it takes no job that is newer than itself, so that none is taken twice
-- params:
-- returns: the highest id of a live job (0: none), the time as timestamptz
-- moves:
-- locks:   none
-- index:   job_pkey
select coalesce(max(id), 0), pgbroker.clock()
from pgbroker.job
