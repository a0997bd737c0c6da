-- purpose: make one scheduled job pending before it is due, for somebody who wants to run it by hand
-- params:  id bigint
-- returns: nothing
-- moves:   scheduled -> pending
-- locks:   the job row, skipped if another holds it
-- index:   job_pkey
update pgbroker.job
set state = 0, available_at = least(available_at, pgbroker.clock())
where id = any (array(select id from pgbroker.job where id = %(id)s::bigint and state = 2 for no key update skip locked))
