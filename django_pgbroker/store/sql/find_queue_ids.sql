-- purpose: the ids of queues by name
-- params:  names text[]
-- returns: name, id
-- moves:
-- locks:   none
-- index:   queue_name_key
select name, id from pgbroker.queue where name = any (%(names)s::text[])
