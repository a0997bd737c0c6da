-- purpose: where one job stands, live or finished, and who has it, for somebody who wants to run it by hand
-- params:  id bigint
-- returns: state, queue, whether the queue is paused, job type, worker (its name, null when none has it), and as epochs
--          leased_at, available_at, finished_at; whether it has expired, whether it waits for limits or for its turn;
--          no row when the job is unknown
-- moves:
-- locks:   none
-- index:   job_pkey
select
    found.state,
    queue.name,
    queue.paused_at is not null,
    (select name from pgbroker.job_type where job_type.id = found.job_type_id),
    (select name from pgbroker.worker where worker.id = found.worker_id),
    extract(epoch from found.leased_at)::float8,
    extract(epoch from found.available_at)::float8,
    extract(epoch from found.finished_at)::float8,
    found.is_expired,
    found.is_limited
from (
    select state, queue_id, job_type_id, worker_id, leased_at, available_at, null::timestamptz as finished_at,
        expires_at <= pgbroker.clock() as is_expired, limit_ids is not null or sequence_id is not null as is_limited
    from pgbroker.job
    where id = %(id)s::bigint
    union all
    select state, queue_id, job_type_id, null, null, available_at, finished_at, false, false
    from pgbroker.archived_job
    where id = %(id)s::bigint
) as found
join pgbroker.queue on queue.id = found.queue_id
limit 1
