-- purpose: the name of one tenant
-- params:  id bigint
-- returns: name
-- moves:
-- locks:   none
-- index:   tenant_pkey
select name from pgbroker.tenant where id = %(id)s::bigint
