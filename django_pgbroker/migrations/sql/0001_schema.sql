-- The schema of the broker. Reviewed DDL; the models only describe it.
-- No table of the hot path has a foreign key (it would cost enqueue two thirds of its rate) and none leaves the schema.

do $$ begin
    if to_regnamespace('pgbroker') is null then
        create schema pgbroker;
    end if;
end $$;
revoke all on schema pgbroker from public;

-- The time of every statement. Inlined by the planner; the testing kit replaces it by one with an offset.
create function pgbroker.clock() returns timestamptz
    language sql stable parallel safe
    as $$ select statement_timestamp() $$;

-- Grows with every claim, over all queues: the larger token is the later claim.
create sequence pgbroker.lease_token_seq as bigint;

------------------------------------------------------------------------------------------------- names

create table pgbroker.tenant (
    id          bigint generated always as identity primary key,
    name        text not null,
    created_at  timestamptz not null default pgbroker.clock(),
    constraint tenant_name_key unique (name),
    constraint tenant_name_check check (length(name) between 1 and 100)
);

create table pgbroker.queue (
    id                bigint generated always as identity primary key,
    name              text not null,
    ageing_seconds    integer not null default 60,
    paused_at         timestamptz,
    paused_by         text,
    pause_reason      text,
    -- sampled by a duty: exact figures cost too much to be read by every page
    sampled_at        timestamptz,
    pending_count     bigint,
    scheduled_count   bigint,
    blocked_count     bigint,
    parked_count      bigint,
    running_count     bigint,
    oldest_pending_at timestamptz,
    created_at        timestamptz not null default pgbroker.clock(),
    constraint queue_name_key unique (name),
    constraint queue_name_check check (length(name) between 1 and 100),
    constraint queue_ageing_check check (ageing_seconds between 0 and 1000000)
) with (fillfactor = 50);

create table pgbroker.job_type (
    id          bigint generated always as identity primary key,
    name        text not null,
    created_at  timestamptz not null default pgbroker.clock(),
    constraint job_type_name_key unique (name),
    constraint job_type_name_check check (length(name) between 1 and 200)
);

------------------------------------------------------------------------------------------------- live work

-- States: 0 pending, 1 running, 2 scheduled, 3 blocked, 4 parked (finished ones live in archived_job).
create table pgbroker.job (
    id               bigint generated always as identity primary key,
    tenant_id        bigint not null,
    queue_id         bigint not null,
    job_type_id      bigint not null,
    created_at       timestamptz not null,
    available_at     timestamptz not null,
    -- available_at - priority * ageing: priority that rises with waiting, and never changes with time
    claim_order      timestamptz not null,
    -- latest start; a deadline (latest finish) bounds it too
    expires_at       timestamptz not null default 'infinity',
    deadline_at      timestamptz,
    lease_token      bigint,
    leased_at        timestamptz,
    lease_expires_at timestamptz,
    -- null while a claim waits in its worker: what never began costs no attempt when that worker dies
    started_at       timestamptz,
    worker_id        bigint,
    run_group_id     bigint,
    sequence_id      bigint,
    parked_on        bigint,
    fair_tenant_id   bigint,
    timeout_seconds  integer,
    unmet            integer not null default 0,
    state            smallint not null,
    priority         smallint not null default 0,
    attempt          smallint not null default 0,
    max_attempts     smallint not null default 3,
    -- leases that lapsed, and how many of them while the handler ran
    lapses           smallint not null default 0,
    deaths           smallint not null default 0,
    interruptions    smallint not null default 0,
    parked_reason    smallint,
    limit_ids        bigint[],
    constraint job_state_check check (state in (0, 1, 2, 3, 4)),
    constraint job_lease_check check ((state = 1) = (lease_token is not null)),
    constraint job_priority_check check (priority between -100 and 100),
    constraint job_max_attempts_check check (max_attempts between 1 and 1000)
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);
create index job_claim on pgbroker.job (queue_id, claim_order, id) where state = 0;
create index job_running on pgbroker.job (id) where state = 1;
create index job_due on pgbroker.job (queue_id, available_at, id) where state = 2;
create index job_blocked on pgbroker.job (id) where state = 3;
create index job_parked on pgbroker.job (parked_on, claim_order, id) where state = 4;
create index job_sequence on pgbroker.job (sequence_id, id) where sequence_id is not null;
create index job_expiring on pgbroker.job (expires_at, id) where state <> 1 and expires_at < 'infinity';

create table pgbroker.job_payload (
    job_id         bigint primary key,
    version        smallint not null default 1,
    arguments      jsonb not null,
    headers        jsonb,
    correlation_id text,
    created_by     text
) with (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1
);

------------------------------------------------------------------------------------------------- history

-- States: 10 completed, 11 cancelled, 12 expired, 13 dead. Dead letters have a partition that age never drops.
create table pgbroker.archived_job (
    id             bigint not null,
    tenant_id      bigint not null,
    queue_id       bigint not null,
    job_type_id    bigint not null,
    run_group_id   bigint,
    created_at     timestamptz not null,
    available_at   timestamptz not null,
    finished_at    timestamptz not null,
    fingerprint    bigint,
    state          smallint not null,
    priority       smallint not null,
    attempt        smallint not null,
    max_attempts   smallint not null,
    deaths         smallint not null,
    interruptions  smallint not null,
    version        smallint not null,
    arguments      jsonb not null,
    headers        jsonb,
    result         jsonb,
    correlation_id text,
    created_by     text,
    reason         text,
    error_class    text,
    error_message  text,
    constraint archived_job_state_check check (state in (10, 11, 12, 13)),
    primary key (id, state, finished_at)
) partition by list (state);
create table pgbroker.archived_job_dead partition of pgbroker.archived_job for values in (13);
create table pgbroker.archived_job_finished partition of pgbroker.archived_job for values in (10, 11, 12)
    partition by range (finished_at);
create table pgbroker.archived_job_finished_default partition of pgbroker.archived_job_finished default;

-- Outcomes: 1 completed, 2 failed, 3 timed_out, 4 snoozed, 5 cancelled, 6 lost, 7 interrupted.
create table pgbroker.execution (
    job_id           bigint not null,
    lease_token      bigint not null,
    tenant_id        bigint not null,
    queue_id         bigint not null,
    job_type_id      bigint not null,
    worker_id        bigint,
    leased_at        timestamptz not null,
    finished_at      timestamptz not null,
    run_microseconds bigint,
    fingerprint      bigint,
    attempt          smallint not null,
    outcome          smallint not null,
    reason           text,
    error_class      text,
    error_message    text,
    traceback        text,
    constraint execution_outcome_check check (outcome between 1 and 7),
    primary key (job_id, lease_token, finished_at)
) partition by range (finished_at);
create table pgbroker.execution_default partition of pgbroker.execution default;

-- Jobs per minute, with the base-two logarithms of their wait and run time in milliseconds.
-- A row per worker: the acknowledges of two workers never meet on one.
create table pgbroker.stat_minute (
    minute           timestamptz not null,
    worker_id        bigint not null,
    queue_id         bigint not null,
    job_type_id      bigint not null,
    outcome          smallint not null,
    wait_bucket      smallint not null,
    run_bucket       smallint not null,
    jobs             bigint not null,
    wait_microseconds bigint not null,
    run_microseconds  bigint not null,
    primary key (minute, worker_id, queue_id, job_type_id, outcome, wait_bucket, run_bucket)
) with (fillfactor = 50);

------------------------------------------------------------------------------------------------- structure

-- Edges point to lower ids only. The probed column leads its index: a skip scan over another one cost 46 times as much.
create table pgbroker.job_dependency (
    id                  bigint generated always as identity primary key,
    job_id              bigint not null,
    depends_on_job_id   bigint,
    depends_on_group_id bigint,
    satisfied           boolean not null default false,
    created_at          timestamptz not null default pgbroker.clock(),
    constraint job_dependency_target_check check (num_nonnulls(depends_on_job_id, depends_on_group_id) = 1),
    constraint job_dependency_order_check check (depends_on_job_id < job_id)
);
create index job_dependency_child on pgbroker.job_dependency (job_id);
create unique index job_dependency_parent on pgbroker.job_dependency (depends_on_job_id, job_id)
    where depends_on_job_id is not null;
create unique index job_dependency_group on pgbroker.job_dependency (depends_on_group_id, job_id)
    where depends_on_group_id is not null;

create table pgbroker.run_group (
    id                bigint generated always as identity primary key,
    tenant_id         bigint not null,
    name              text not null,
    state             smallint not null default 0,
    completion_policy smallint not null default 0,
    created_at        timestamptz not null default pgbroker.clock(),
    created_by        text,
    sealed_at         timestamptz,
    seal_by           timestamptz,
    finished_at       timestamptz,
    member_count      bigint not null default 0,
    completed_count   bigint not null default 0,
    failed_count      bigint not null default 0,
    constraint run_group_name_key unique (tenant_id, name),
    constraint run_group_name_check check (length(name) between 1 and 200)
);

create table pgbroker.schedule (
    id               bigint generated always as identity primary key,
    tenant_id        bigint not null,
    queue_id         bigint not null,
    job_type_id      bigint not null,
    name             text not null,
    cron_expression  text,
    interval_seconds bigint,
    once_at          timestamptz,
    time_zone        text not null,
    is_enabled       boolean not null default true,
    is_declared      boolean not null default false,
    priority         smallint not null default 0,
    arguments        jsonb not null default '{}',
    template         jsonb,
    misfire_policy   smallint not null default 0,
    gap_policy       smallint not null default 0,
    fold_policy      smallint not null default 0,
    catch_up_limit   integer,
    catch_up_seconds bigint,
    next_run_at      timestamptz,
    last_run_at      timestamptz,
    disabled_reason  text,
    created_at       timestamptz not null default pgbroker.clock(),
    updated_at       timestamptz not null default pgbroker.clock(),
    constraint schedule_name_key unique (tenant_id, name),
    constraint schedule_kind_check check (num_nonnulls(cron_expression, interval_seconds, once_at) = 1)
);
create index schedule_due on pgbroker.schedule (next_run_at, id) where is_enabled;

create table pgbroker.schedule_run (
    id            bigint generated always as identity primary key,
    schedule_id   bigint not null,
    scheduled_for timestamptz not null,
    state         smallint not null default 0,
    job_id        bigint,
    run_group_id  bigint,
    created_at    timestamptz not null default pgbroker.clock(),
    details       jsonb,
    constraint schedule_run_occurrence_key unique (schedule_id, scheduled_for)
);

------------------------------------------------------------------------------------------------- operation

create table pgbroker.worker (
    id                bigint generated always as identity primary key,
    name              text not null,
    hostname          text not null,
    process_id        integer not null,
    version           text not null,
    queues            jsonb not null,
    job_type_ids      bigint[] not null default '{}',
    concurrency       integer not null,
    running_count     integer not null default 0,
    started_at        timestamptz not null default pgbroker.clock(),
    heartbeat_at      timestamptz not null default pgbroker.clock(),
    heartbeat_seconds double precision not null,
    clock_skew_seconds double precision,
    drain_requested_at timestamptz,
    stop_requested_at  timestamptz,
    draining_at       timestamptz,
    stopped_at        timestamptz,
    stop_reason       text
) with (fillfactor = 50);
create index worker_live on pgbroker.worker (heartbeat_at) where stopped_at is null;

create table pgbroker.audit_entry (
    id          bigint generated always as identity primary key,
    occurred_at timestamptz not null default pgbroker.clock(),
    tenant_id   bigint,
    actor       text not null,
    source      text not null,
    action      text not null,
    target      jsonb not null default '{}',
    reason      text,
    before      jsonb,
    after       jsonb,
    count       bigint not null default 1
);

insert into pgbroker.tenant (name) values ('default');

revoke all on all tables in schema pgbroker from public;
revoke all on all sequences in schema pgbroker from public;
revoke all on all functions in schema pgbroker from public;
