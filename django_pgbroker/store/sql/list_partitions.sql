-- purpose: list the partitions by time of the archive and of the executions
-- params:
-- returns: parent, name, lower and upper bound (null: open, or beyond what Python can hold), whether it is the default one
-- moves:
-- locks:   none
-- index:   the catalogue's own
select
    parent.relname::text as parent,
    child.relname::text as name,
    case when bounds.lower between holdable.first and holdable.last then bounds.lower end as lower,
    case when bounds.upper between holdable.first and holdable.last then bounds.upper end as upper,
    bound.expression = 'DEFAULT' as is_default
from pg_inherits as link
join pg_class as child on child.oid = link.inhrelid
join pg_class as parent on parent.oid = link.inhparent
cross join lateral (select pg_get_expr(child.relpartbound, child.oid) as expression) as bound
cross join lateral (
    select
        substring(bound.expression from 'FROM \(''([^'']*)''\)')::timestamptz as lower,
        substring(bound.expression from 'TO \(''([^'']*)''\)')::timestamptz as upper
) as bounds
cross join (values (timestamptz '0002-01-01', timestamptz '9999-01-01')) as holdable (first, last)
where parent.relnamespace = 'pgbroker'::regnamespace
    and parent.relname in ('archived_job_finished', 'execution')
order by parent.relname, bounds.lower nulls first, child.relname
