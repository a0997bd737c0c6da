-- purpose: make the scheduled jobs of one queue pending when they are due, and tell when the next one will be
-- params:  queue_id bigint, batch bigint, floor float8 (epoch of the lowest available_at to look at)
-- returns: how many moved, the seconds until the next scheduled job is due (null: none waits), and the epoch of the latest
--          time among those that moved (null: none did)
-- moves:   scheduled -> pending
-- locks:   job rows in order of their time, skipping rows that others hold
-- index:   job_due
with due as materialized (
    select id, available_at
    from pgbroker.job
    where queue_id = %(queue_id)s::bigint
      and state = 2
      and available_at >= to_timestamp(%(floor)s::float8)
      and available_at <= pgbroker.clock()
    order by available_at, id
    limit %(batch)s::bigint
    for no key update skip locked
),
promoted as (
    update pgbroker.job
    set state = 0
    where id = any (array(select id from due))
    returning id
)
select
    (select count(*) from promoted),
    (
        select extract(epoch from available_at - pgbroker.clock())::float8
        from pgbroker.job
        where queue_id = %(queue_id)s::bigint and state = 2 and available_at > pgbroker.clock()
        order by available_at
        limit 1
    ),
    (select extract(epoch from max(available_at))::float8 from due)
