-- purpose: unblock the jobs whose last unmet parent is among the given ones; a statement of its own, for a snapshot that sees
--          every edge committed before the parents were locked
-- params:  ids bigint[] (jobs archived as completed a moment ago)
-- returns: the names of the queues that have new pending jobs
-- moves:   blocked -> pending | scheduled
-- locks:   edges of the parents, then job rows by id, waited for (edges point to lower ids: no circle)
-- index:   job_dependency_parent
with edge as materialized (
    select id, job_id, depends_on_job_id
    from pgbroker.job_dependency
    where depends_on_job_id = any (%(ids)s::bigint[])
      and depends_on_job_id is not null
      and not satisfied
),
met as (
    select edge.id
    from edge
    cross join lateral (
        select
        from pgbroker.archived_job
        where archived_job.id = edge.depends_on_job_id
          and state = 10
          and finished_at > pgbroker.clock() - interval '1 hour'
          and finished_at <= pgbroker.clock()
        offset 0
    ) as parent
),
satisfied as (
    update pgbroker.job_dependency
    set satisfied = true
    where id = any (array(select id from met)) and not satisfied
    returning job_id
),
lowered as materialized (
    select coalesce(array_agg(job_id order by job_id), '{}') as job_ids, coalesce(array_agg(edges order by job_id), '{}') as edges
    from (select job_id, count(*)::int as edges from satisfied group by job_id) as child
),
child as materialized (
    select id
    from pgbroker.job
    where id = any ((select job_ids from lowered)::bigint[])
    order by id
    for no key update
),
moved as (
    update pgbroker.job
    set unmet = unmet - (select edges from lowered)[width_bucket(id, (select job_ids from lowered))],
        state = case
            when unmet - (select edges from lowered)[width_bucket(id, (select job_ids from lowered))] > 0 then 3
            when available_at > pgbroker.clock() then 2
            else 0
        end
    where id = any (array(select id from child)) and state = 3
    returning id, queue_id, state
)
select distinct (select name from pgbroker.queue where queue.id = moved.queue_id) from moved where state = 0
