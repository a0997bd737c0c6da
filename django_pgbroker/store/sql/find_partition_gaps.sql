-- purpose: name the stretches of time that still lack a partition: from the current period to the days ahead, and
--          the latest periods whose rows landed in a default partition
-- params:  period text (day, week or month), days_ahead int, move_limit bigint (rows in a default partition)
-- returns: parent, name for the new partition, lower and upper bound as text, whether rows may be arriving in it
-- moves:
-- locks:   none
-- index:   the catalogue's own; default partitions are read whole, and are meant to be empty
with horizon as (
    select
        pgbroker.clock() at time zone 'UTC' as now_at,
        date_trunc(%(period)s::text, pgbroker.clock() at time zone 'UTC') as current_at,
        ('1 ' || %(period)s::text)::interval as step
),
stranded as (
    -- bounded: a default partition that has taken a whole history must not keep the coming periods from being made
    (
        select 'execution' as parent, finished_at at time zone 'UTC' as finished_at
        from pgbroker.execution_default
        limit 1000000
    )
    union all
    (
        select 'archived_job_finished', finished_at at time zone 'UTC'
        from pgbroker.archived_job_finished_default
        limit 1000000
    )
),
crowded as (
    select parent
    from stranded
    group by parent
    having count(*) >= 1000000
),
wanted as (
    select parents.parent, starts_at
    from horizon
    cross join (values ('archived_job_finished'), ('execution')) as parents (parent)
    cross join generate_series(current_at, now_at + make_interval(days => %(days_ahead)s::int), step) as starts_at
    union
    -- a handful at a time, and none from far-off dates: a wrong clock must not breed partitions
    select parent, starts_at
    from (
        select parent, starts_at, row_number() over (partition by parent order by starts_at desc) as place
        from (
            select distinct parent, date_trunc(%(period)s::text, finished_at) as starts_at
            from stranded
            cross join horizon
            where finished_at < current_at and finished_at >= current_at - interval '1 year'
        ) as periods
    ) as latest
    where place <= 8
),
covered as (
    select
        parent.relname::text as parent,
        range_agg(tstzrange(
            substring(bound.expression from 'FROM \(''([^'']*)''\)')::timestamptz,
            substring(bound.expression from 'TO \(''([^'']*)''\)')::timestamptz
        )) as ranges
    from pg_inherits as link
    join pg_class as child on child.oid = link.inhrelid
    join pg_class as parent on parent.oid = link.inhparent
    cross join lateral (select pg_get_expr(child.relpartbound, child.oid) as expression) as bound
    where parent.relnamespace = 'pgbroker'::regnamespace
        and parent.relname in ('archived_job_finished', 'execution')
        and bound.expression <> 'DEFAULT'
    group by parent.relname
),
periods as (
    select
        parent,
        starts_at,
        tstzrange(starts_at at time zone 'UTC', (starts_at + step) at time zone 'UTC') as whole
    from wanted
    cross join horizon
)
select
    periods.parent,
    periods.parent || '_' || case
        when gap = whole and %(period)s::text = 'week' then to_char(starts_at, 'IYYY"w"IW')
        when gap = whole and %(period)s::text = 'month' then to_char(starts_at, 'YYYYMM')
        when gap = whole then to_char(starts_at, 'YYYYMMDD')
        else to_char(lower(gap) at time zone 'UTC', 'YYYYMMDD')
            || '_' || to_char(upper(gap) at time zone 'UTC', 'YYYYMMDD')
    end as name,
    lower(gap)::text as lower,
    upper(gap)::text as upper,
    lower(gap) <= pgbroker.clock() as has_begun
from periods
left join covered using (parent)
cross join lateral unnest(tstzmultirange(whole) - coalesce(covered.ranges, tstzmultirange())) as gap
cross join lateral (
    select count(*) as amount
    from stranded
    where stranded.parent = periods.parent and gap @> (stranded.finished_at at time zone 'UTC')
) as rows_to_move
where rows_to_move.amount <= %(move_limit)s::bigint
    and (lower(gap) > pgbroker.clock() or periods.parent not in (select parent from crowded))
order by lower(gap), periods.parent
