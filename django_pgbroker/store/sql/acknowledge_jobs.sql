-- purpose: record what became of claimed jobs: history, archive or back to the queue, counters; each behind its token
-- params:  ids bigint[] (sorted, unique), and by the same position: tokens bigint[], outcomes smallint[],
--          next_states smallint[], delays float8[] (seconds), run_microseconds bigint[], results text[] (JSON),
--          errors text[] (JSON: class, message, traceback, fingerprint), reasons text[]; lapsed boolean (the lease must be over)
-- returns: only the exceptions: id and 'busy' (still ours, locked by another) or 'stale' (the claim is no longer ours)
-- moves:   running -> pending | scheduled | completed | cancelled | dead
-- locks:   job rows by id, skipping rows that others hold; then nothing but rows of this worker's counters
-- index:   job_pkey
-- A job whose cancel was requested ends as cancelled, whatever its next state would have been.
-- Progress moves to the archive (a completed job is at its total); a dead letter keeps its steps, so that a redrive goes on.
with locked as materialized (
    select
        id, tenant_id, queue_id, job_type_id, run_group_id, worker_id, lease_token, created_at, available_at, leased_at,
        started_at is not null or (not %(lapsed)s::boolean) as has_begun,
        case when cancel_requested_at is not null then
            concat_ws(': ', concat('cancelled', ' by ' || cancel_requested_by), cancel_reason)
        end as cancel_reason,
        priority, attempt, max_attempts, deaths, interruptions, is_tracked, timeout_seconds,
        width_bucket(id, %(ids)s::bigint[]) as position,
        (%(outcomes)s::smallint[])[width_bucket(id, %(ids)s::bigint[])] as outcome,
        case when cancel_requested_at is not null then 11::smallint
            else (%(next_states)s::smallint[])[width_bucket(id, %(ids)s::bigint[])]
        end as next_state,
        (%(run_microseconds)s::bigint[])[width_bucket(id, %(ids)s::bigint[])] as run_microseconds,
        (%(errors)s::text[])[width_bucket(id, %(ids)s::bigint[])]::jsonb as error
    from pgbroker.job
    where id = any (%(ids)s::bigint[])
      and state = 1
      and lease_token = (%(tokens)s::bigint[])[width_bucket(id, %(ids)s::bigint[])]
      and (not %(lapsed)s::boolean or lease_expires_at < pgbroker.clock())
    order by id
    for update skip locked
),
history as (
    insert into pgbroker.execution (
        job_id, lease_token, tenant_id, queue_id, job_type_id, worker_id, leased_at, finished_at, run_microseconds,
        fingerprint, attempt, outcome, reason, error_class, error_message, traceback
    )
    select
        id, lease_token, tenant_id, queue_id, job_type_id, worker_id, leased_at, pgbroker.clock(), run_microseconds,
        (error ->> 'fingerprint')::bigint, attempt, outcome, (%(reasons)s::text[])[position],
        error ->> 'class', error ->> 'message', error ->> 'traceback'
    from locked
    where outcome > 0
),
finished as (
    delete from pgbroker.job
    where id = any (array(select id from locked where next_state >= 10))
),
payload as (
    delete from pgbroker.job_payload
    where job_id = any (array(select id from locked where next_state >= 10))
    returning job_id, version, arguments, headers, correlation_id, created_by
),
progress as (
    delete from pgbroker.job_progress
    where job_id = any (array(select id from locked where is_tracked and next_state >= 10))
    returning job_id, done, total, stage
),
steps as (
    delete from pgbroker.job_step
    where job_id = any (array(select id from locked where is_tracked and next_state in (10, 11)))
),
archive as (
    insert into pgbroker.archived_job (
        id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, finished_at, fingerprint, state,
        priority, attempt, max_attempts, deaths, interruptions, version, arguments, headers, result, correlation_id,
        created_by, reason, error_class, error_message, progress, timeout_seconds
    )
    select
        id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, pgbroker.clock(),
        (error ->> 'fingerprint')::bigint, next_state, priority, attempt - (outcome = 0)::int, max_attempts,
        deaths + (outcome = 6 and has_begun)::int, interruptions + (outcome = 7)::int,
        coalesce(version, 1), coalesce(arguments, '{}'), headers, (%(results)s::text[])[position]::jsonb, correlation_id,
        created_by, coalesce(cancel_reason, (%(reasons)s::text[])[position]), error ->> 'class', error ->> 'message',
        case when progress.job_id is not null then jsonb_build_object(
            'done', case when next_state = 10 then coalesce(total, done) else done end, 'total', total, 'stage', stage
        ) end,
        timeout_seconds
    from locked
    left join payload on payload.job_id = locked.id
    left join progress on progress.job_id = locked.id
    where next_state >= 10
),
returned as (
    update pgbroker.job as job
    set state = (%(next_states)s::smallint[])[width_bucket(id, %(ids)s::bigint[])],
        attempt = attempt - (
            (%(outcomes)s::smallint[])[width_bucket(id, %(ids)s::bigint[])]
            = any (case when started_at is null and %(lapsed)s::boolean then '{0,4,6,7}' else '{0,4,7}' end::smallint[])
        )::int,
        lapses = lapses + ((%(outcomes)s::smallint[])[width_bucket(id, %(ids)s::bigint[])] = 6)::int,
        deaths = deaths
            + (
                (%(outcomes)s::smallint[])[width_bucket(id, %(ids)s::bigint[])] = 6
                and (started_at is not null or not %(lapsed)s::boolean)
            )::int,
        interruptions = interruptions + ((%(outcomes)s::smallint[])[width_bucket(id, %(ids)s::bigint[])] = 7)::int,
        available_at = case
            when (%(outcomes)s::smallint[])[width_bucket(id, %(ids)s::bigint[])] in (0, 7) then available_at
            else pgbroker.clock() + (%(delays)s::float8[])[width_bucket(id, %(ids)s::bigint[])] * interval '1 second'
        end,
        claim_order = case
            when (%(outcomes)s::smallint[])[width_bucket(id, %(ids)s::bigint[])] in (0, 7) then claim_order
            else pgbroker.clock() + (%(delays)s::float8[])[width_bucket(id, %(ids)s::bigint[])] * interval '1 second'
                - priority * (select ageing_seconds from pgbroker.queue where queue.id = job.queue_id) * interval '1 second'
        end,
        lease_token = null,
        leased_at = null,
        lease_expires_at = null,
        started_at = null,
        worker_id = null
    where id = any (array(select id from locked where next_state < 10))
),
counted as (
    insert into pgbroker.stat_minute as stat (
        minute, worker_id, queue_id, job_type_id, outcome, wait_bucket, run_bucket,
        jobs, wait_microseconds, run_microseconds
    )
    select
        date_trunc('minute', pgbroker.clock()), coalesce(worker_id, 0), queue_id, job_type_id, outcome, wait_bucket,
        run_bucket, count(*), sum(waited), sum(ran)
    from locked
    cross join lateral (
        select
            (extract(epoch from leased_at - available_at) * 1000000)::bigint as waited,
            coalesce(run_microseconds, 0) as ran
    ) as measured
    cross join lateral (
        select
            width_bucket(waited, '{1000,2000,4000,8000,16000,32000,64000,128000,256000,512000,1024000,2048000,4096000,8192000,16384000,32768000,65536000,131072000,262144000,524288000,1048576000,2097152000,4194304000,8388608000,16777216000,33554432000,67108864000}'::bigint[]) as wait_bucket,
            width_bucket(ran, '{1000,2000,4000,8000,16000,32000,64000,128000,256000,512000,1024000,2048000,4096000,8192000,16384000,32768000,65536000,131072000,262144000,524288000,1048576000,2097152000,4194304000,8388608000,16777216000,33554432000,67108864000}'::bigint[]) as run_bucket
    ) as bucket
    where outcome > 0
    group by 2, 3, 4, 5, 6, 7
    order by 2, 3, 4, 5, 6, 7
    on conflict (minute, worker_id, queue_id, job_type_id, outcome, wait_bucket, run_bucket) do update
    set jobs = stat.jobs + excluded.jobs,
        wait_microseconds = stat.wait_microseconds + excluded.wait_microseconds,
        run_microseconds = stat.run_microseconds + excluded.run_microseconds
)
select
    verdict.id,
    case
        when exists (
            select from pgbroker.job
            where job.id = verdict.id and job.lease_token = verdict.token and job.state = 1
        ) then 'busy'
        else 'stale'
    end
from unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) as verdict (id, token)
where (select count(*) from locked) < cardinality(%(ids)s::bigint[])
  and not exists (select from locked where locked.id = verdict.id)
