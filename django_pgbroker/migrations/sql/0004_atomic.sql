-- The last statement of a transactional job, inside the handler's own transaction.

-- It runs under the application's role, which needs no right but EXECUTE: hence SECURITY DEFINER, and nothing but the one
-- claim that id and token name. It raises where the transaction must not commit: PB001, the claim is over; PB002, the job
-- is to be cancelled.
create function pgbroker.complete_job(
    job bigint, token bigint, run_microseconds bigint, result jsonb, reason text
) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    claim pgbroker.job;
    reached jsonb;
begin
    select * into claim
    from pgbroker.job
    where id = complete_job.job and lease_token = complete_job.token and state = 1
    for update;

    if not found then
        raise exception 'the claim of job % is over', complete_job.job using errcode = 'PB001';
    end if;
    if claim.cancel_requested_at is not null then
        raise exception 'job % is to be cancelled', complete_job.job using errcode = 'PB002';
    end if;

    -- the mark comes with the worker's next turn, which is too late for steps of this very attempt
    if claim.is_tracked or exists (select from pgbroker.job_step where job_id = claim.id) then
        delete from pgbroker.job_step where job_id = claim.id;
        delete from pgbroker.job_progress
        where job_id = claim.id
        returning jsonb_build_object('done', coalesce(total, done), 'total', total, 'stage', stage) into reached;
    end if;

    with history as (
        insert into pgbroker.execution (
            job_id, lease_token, tenant_id, queue_id, job_type_id, worker_id, leased_at, finished_at, run_microseconds,
            attempt, outcome, reason
        )
        values (
            claim.id, claim.lease_token, claim.tenant_id, claim.queue_id, claim.job_type_id, claim.worker_id,
            claim.leased_at, pgbroker.clock(), complete_job.run_microseconds, claim.attempt, 1, complete_job.reason
        )
    ),
    finished as (
        delete from pgbroker.job where id = claim.id
    ),
    payload as (
        delete from pgbroker.job_payload
        where job_id = claim.id
        returning version, arguments, headers, correlation_id, created_by
    )
    insert into pgbroker.archived_job (
        id, tenant_id, queue_id, job_type_id, run_group_id, created_at, available_at, finished_at, state, priority,
        attempt, max_attempts, deaths, interruptions, version, arguments, headers, result, correlation_id, created_by,
        reason, progress
    )
    select
        claim.id, claim.tenant_id, claim.queue_id, claim.job_type_id, claim.run_group_id, claim.created_at,
        claim.available_at, pgbroker.clock(), 10, claim.priority, claim.attempt, claim.max_attempts, claim.deaths,
        claim.interruptions, coalesce(payload.version, 1), coalesce(payload.arguments, '{}'), payload.headers,
        complete_job.result, payload.correlation_id, payload.created_by, complete_job.reason, reached
    from (values (1)) as one
    left join payload on true;
end
$$;

revoke all on function pgbroker.complete_job(bigint, bigint, bigint, jsonb, text) from public;
