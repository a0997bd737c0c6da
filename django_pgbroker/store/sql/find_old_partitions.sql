-- purpose: list the partitions by time whose whole history is older than a limit, oldest first
-- params:  days bigint
-- returns: parent, name, lower and upper bound, rows (an estimate), bytes with indexes
-- moves:
-- locks:   none
-- index:   the catalogue's own
-- A partition without an upper bound, or with one that a date cannot hold, is never old.
select
    parent.relname::text as parent,
    child.relname::text as name,
    case when bounds.lower > timestamptz '0002-01-01' then bounds.lower end as lower,
    case when bounds.upper > timestamptz '0002-01-01' then bounds.upper end as upper,
    case when child.reltuples >= 0 then child.reltuples else pg_stat_get_live_tuples(child.oid) end::bigint as rows,
    pg_total_relation_size(child.oid) as bytes
from pg_inherits as link
join pg_class as child on child.oid = link.inhrelid
join pg_class as parent on parent.oid = link.inhparent
cross join lateral (select pg_get_expr(child.relpartbound, child.oid) as expression) as bound
cross join lateral (
    select
        substring(bound.expression from 'FROM \(''([^'']*)''\)')::timestamptz as lower,
        substring(bound.expression from 'TO \(''([^'']*)''\)')::timestamptz as upper
) as bounds
where parent.relnamespace = 'pgbroker'::regnamespace
    and parent.relname in ('archived_job_finished', 'execution')
    and bounds.upper <= pgbroker.clock() - %(days)s::bigint * interval '24 hours'
order by bounds.upper, parent.relname, child.relname
