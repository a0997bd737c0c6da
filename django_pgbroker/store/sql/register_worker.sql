-- purpose: a new worker process says that it is there; every start is a new row, whatever its name
-- params:  name, hostname, version text, process_id int, queues text (JSON: name to weight), job_type_ids bigint[],
--          concurrency int, heartbeat_seconds float8
-- returns: id, the time as epoch float8
-- moves:
-- locks:   none
-- index:   worker_pkey
insert into pgbroker.worker (name, hostname, version, process_id, queues, job_type_ids, concurrency, heartbeat_seconds)
values (
    %(name)s::text, %(hostname)s::text, %(version)s::text, %(process_id)s::int, %(queues)s::jsonb,
    %(job_type_ids)s::bigint[], %(concurrency)s::int, %(heartbeat_seconds)s::float8
)
returning id, extract(epoch from pgbroker.clock())::float8
