-- What long jobs tell and remember: how far they are, the steps they have done, and their cursor.
-- Both tables are reached only for jobs whose hot row says is_tracked, so ordinary jobs pay nothing for them.

alter table pgbroker.job
    add column is_tracked boolean not null default false;

alter table pgbroker.archived_job
    add column progress jsonb;

-- The newest progress of a job, written at most once a second; updates stay on their page.
create table pgbroker.job_progress (
    job_id      bigint primary key,
    lease_token bigint not null,
    done        double precision not null,
    total       double precision,
    stage       text,
    updated_at  timestamptz not null
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 1
);

-- Steps that a job need not do again. The row with the empty name is its cursor.
create table pgbroker.job_step (
    job_id      bigint not null,
    name        text not null,
    lease_token bigint not null,
    result      jsonb not null,
    finished_at timestamptz not null,
    primary key (job_id, name),
    constraint job_step_name_check check (length(name) <= 200)
) with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 1
);

revoke all on pgbroker.job_progress, pgbroker.job_step from public;
