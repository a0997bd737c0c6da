-- purpose: count executions that were recorded without the counters: those of transactional jobs, whose commits must not
--          meet on a row
-- params:  ids bigint[], and by the same position: tokens bigint[]
-- returns: nothing
-- moves:
-- locks:   rows of this worker's counters
-- index:   execution_pkey, archived_job_pkey
with ended as materialized (
    select done.*, (extract(epoch from done.leased_at - archived.available_at) * 1000000)::bigint as waited
    from unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) as claim (id, token)
    cross join lateral (
        select worker_id, queue_id, job_type_id, outcome, leased_at, coalesce(run_microseconds, 0) as ran
        from pgbroker.execution
        where job_id = claim.id
          and lease_token = claim.token
          and finished_at > pgbroker.clock() - interval '1 day'
          and finished_at <= pgbroker.clock()
        offset 0
    ) as done
    cross join lateral (
        select available_at
        from pgbroker.archived_job
        where id = claim.id
          and state = 10
          and finished_at > pgbroker.clock() - interval '1 day'
          and finished_at <= pgbroker.clock()
        offset 0
    ) as archived
)
insert into pgbroker.stat_minute as stat (
    minute, worker_id, queue_id, job_type_id, outcome, wait_bucket, run_bucket,
    jobs, wait_microseconds, run_microseconds
)
select
    date_trunc('minute', pgbroker.clock()), coalesce(worker_id, 0), queue_id, job_type_id, outcome, wait_bucket,
    run_bucket, count(*), sum(waited), sum(ran)
from ended
cross join lateral (
    select
        width_bucket(waited, '{1000,2000,4000,8000,16000,32000,64000,128000,256000,512000,1024000,2048000,4096000,8192000,16384000,32768000,65536000,131072000,262144000,524288000,1048576000,2097152000,4194304000,8388608000,16777216000,33554432000,67108864000}'::bigint[]) as wait_bucket,
        width_bucket(ran, '{1000,2000,4000,8000,16000,32000,64000,128000,256000,512000,1024000,2048000,4096000,8192000,16384000,32768000,65536000,131072000,262144000,524288000,1048576000,2097152000,4194304000,8388608000,16777216000,33554432000,67108864000}'::bigint[]) as run_bucket
) as bucket
group by 2, 3, 4, 5, 6, 7
order by 2, 3, 4, 5, 6, 7
on conflict (minute, worker_id, queue_id, job_type_id, outcome, wait_bucket, run_bucket) do update
set jobs = stat.jobs + excluded.jobs,
    wait_microseconds = stat.wait_microseconds + excluded.wait_microseconds,
    run_microseconds = stat.run_microseconds + excluded.run_microseconds
