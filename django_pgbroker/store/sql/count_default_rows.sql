-- purpose: count the rows that landed in a default partition, and how many of them are older than a limit
-- params:  days bigint (null: nothing is ever too old), bound bigint (rows looked at in each)
-- returns: parent, rows, those older than the limit; both reach the bound at most
-- moves:
-- locks:   none
-- index:   the catalogue's own; default partitions are meant to be empty
select
    parents.parent,
    count(stranded.finished_at) as rows,
    count(*) filter (
        where stranded.finished_at < (select pgbroker.clock()) - %(days)s::bigint * interval '24 hours'
    ) as old
from (values ('archived_job_finished'), ('execution')) as parents (parent)
left join (
    (select 'execution' as parent, finished_at from pgbroker.execution_default limit %(bound)s::bigint)
    union all
    (
        select 'archived_job_finished', finished_at
        from pgbroker.archived_job_finished_default
        limit %(bound)s::bigint
    )
) as stranded using (parent)
group by parents.parent
order by parents.parent
