-- purpose: how far the next rows of the live table reach, so that a filter looks at a bounded number of them
-- params:  after, until bigint (ids: behind the one, up to the other), rows bigint
-- returns: the last id among them (null: none is left)
-- moves:
-- locks:   none
-- index:   job_pkey
select max(id)
from (
    select id
    from pgbroker.job
    where id > %(after)s::bigint and id <= %(until)s::bigint
    order by id
    limit %(rows)s::bigint
) as looked_at
