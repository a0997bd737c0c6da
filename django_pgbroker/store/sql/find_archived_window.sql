-- purpose: how far the next finished jobs reach, so that a filter looks at a bounded number of them
-- params:  after, until bigint (ids: behind the one, up to the other), states smallint[], rows bigint
-- returns: the last id among them (null: none is left)
-- moves:
-- locks:   none
-- index:   archived_job_pkey
select max(id)
from (
    select id
    from pgbroker.archived_job
    where id > %(after)s::bigint and id <= %(until)s::bigint and state = any (%(states)s::smallint[])
    order by id
    limit %(rows)s::bigint
) as looked_at
