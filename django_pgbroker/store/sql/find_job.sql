-- purpose: how one job stands, live or finished, in one snapshot
-- params:  id bigint
-- returns: state, result (json text, null when none is stored), reason, error_class, error_message; no row when unknown
-- index:   job_pkey
select state, null as result, null as reason, null as error_class, null as error_message
from pgbroker.job
where id = %(id)s::bigint
union all
select state, result::text, reason, error_class, error_message
from pgbroker.archived_job
where id = %(id)s::bigint
limit 1;
