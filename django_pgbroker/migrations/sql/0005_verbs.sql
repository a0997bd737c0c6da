-- What the verbs of operators need: the time-out of a job that is redriven, a pause with an end, orders to one worker, and
-- an audit log that nobody but its owner can rewrite.

alter table pgbroker.archived_job
    add column timeout_seconds integer;

alter table pgbroker.queue
    add column resume_at timestamptz;

alter table pgbroker.worker
    add column ordered_concurrency integer,
    add column paused_queues jsonb not null default '[]',
    add constraint worker_ordered_concurrency_check check (ordered_concurrency between 1 and 10000);

-- "What was done to this job?": target @> '{"jobs": [7]}'
create index audit_entry_target on pgbroker.audit_entry using gin (target jsonb_path_ops);

create function pgbroker.keep_audit() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if not pg_has_role(current_user, (select relowner from pg_class where oid = tg_relid), 'usage') then
        raise exception 'the audit log is append-only: % is refused', lower(tg_op)
            using errcode = 'insufficient_privilege', hint = 'Only the owner of pgbroker.audit_entry may prune it.';
    end if;
    return null;
end
$$;
revoke all on function pgbroker.keep_audit() from public;
create trigger audit_entry_append_only
    before update or delete or truncate on pgbroker.audit_entry
    for each statement execute function pgbroker.keep_audit();
