-- purpose: how one job stands, live or finished, in one snapshot
-- params:  id bigint
-- returns: state, job_type, result (json text, null when none is stored), reason, error_class, error_message;
--          no row when the job is unknown
-- moves:
-- locks:   none
-- index:   job_pkey
select
    found.state,
    (select name from pgbroker.job_type where job_type.id = found.job_type_id) as job_type,
    found.result,
    found.reason,
    found.error_class,
    found.error_message
from (
    select state, job_type_id, null as result, null as reason, null as error_class, null as error_message
    from pgbroker.job
    where id = %(id)s::bigint
    union all
    select state, job_type_id, result::text, reason, error_class, error_message
    from pgbroker.archived_job
    where id = %(id)s::bigint
) as found
limit 1;
