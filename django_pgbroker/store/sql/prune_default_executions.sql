-- purpose: delete rows older than a limit that landed in the default partition, where no partition is dropped with them
-- params:  days bigint, batch bigint
-- returns: nothing; the count of rows is the answer
-- moves:
-- locks:   rows of execution_default, skipping locked ones
-- index:   the catalogue's own; a default partition is read whole, and is meant to be empty
delete from pgbroker.execution_default
where ctid = any (array(
    select ctid
    from pgbroker.execution_default
    where finished_at < (select pgbroker.clock()) - %(days)s::bigint * interval '24 hours'
    limit %(batch)s::bigint
    for update skip locked
))
