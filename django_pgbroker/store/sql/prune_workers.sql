-- purpose: forget the workers that stopped seven days ago or earlier
-- params:  batch bigint
-- returns: id
-- moves:
-- locks:   worker rows, by id, skipping locked ones
-- index:   worker_pkey
with old as materialized (
    select id
    from pgbroker.worker
    where stopped_at < (select pgbroker.clock()) - interval '7 days'
    order by id
    limit %(batch)s::bigint
    for update skip locked
)
delete from pgbroker.worker
where id = any (array(select id from old))
returning id
