-- purpose: delete the counters of minutes that are seven days old
-- params:  batch bigint
-- returns: nothing; the count of rows is the answer
-- moves:
-- locks:   stat_minute rows, oldest minute first, skipping locked ones
-- index:   stat_minute_pkey
delete from pgbroker.stat_minute
where ctid = any (array(
    select ctid
    from pgbroker.stat_minute
    where minute < (select pgbroker.clock()) - interval '7 days'
    order by minute
    limit %(batch)s::bigint
    for update skip locked
))
