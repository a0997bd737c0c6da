-- purpose: the ids of job types by name
-- params:  names text[]
-- returns: name, id
-- moves:
-- locks:   none
-- index:   job_type_name_key
select name, id from pgbroker.job_type where name = any (%(names)s::text[])
