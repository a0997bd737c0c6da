-- purpose: give the live jobs of one queue, among the next ones by id, the place that the queue's ageing says
-- params:  queue text, after bigint (the id to begin behind), batch bigint (jobs to look at, of whatever queue)
-- returns: the last id that was looked at (null: there was none), how many were out of place, and how many of them have
--          moved; the others were locked, or have ended meanwhile
-- moves:
-- locks:   job rows, skipping locked ones
-- index:   job_pkey
with seen as materialized (
    select job.id, own.id is not null
        and claim_order <> available_at - make_interval(secs => priority * own.ageing_seconds) as is_astray
    from (
        select id, queue_id, claim_order, available_at, priority
        from pgbroker.job
        where id > %(after)s::bigint
        order by id
        limit %(batch)s::bigint
    ) as job
    left join (select id, ageing_seconds from pgbroker.queue where name = %(queue)s) as own on own.id = job.queue_id
),
held as materialized (
    select id
    from pgbroker.job
    where id = any (array(select id from seen where is_astray))
    for no key update skip locked
),
moved as (
    update pgbroker.job as job
    set claim_order = available_at - make_interval(
            secs => priority * (select ageing_seconds from pgbroker.queue where queue.id = job.queue_id)
        )
    where id = any (array(select id from held))
    returning id
)
select
    (select max(id) from seen),
    (select count(*) from seen where is_astray),
    (select count(*) from moved);
