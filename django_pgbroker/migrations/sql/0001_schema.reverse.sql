-- Undo 0001_schema.sql. The partitions go with their parents.

drop table
    pgbroker.audit_entry,
    pgbroker.worker,
    pgbroker.schedule_run,
    pgbroker.schedule,
    pgbroker.run_group,
    pgbroker.job_dependency,
    pgbroker.stat_minute,
    pgbroker.execution,
    pgbroker.archived_job,
    pgbroker.job_payload,
    pgbroker.job,
    pgbroker.job_type,
    pgbroker.queue,
    pgbroker.tenant;
drop sequence pgbroker.lease_token_seq;
drop function pgbroker.clock();

-- A role that could not create the schema again leaves it, and so does one that finds something of others in it.
do $$ begin
    if has_database_privilege(current_database(), 'create')
        and (select pg_has_role(nspowner, 'usage') from pg_namespace where nspname = 'pgbroker')
    then
        drop schema pgbroker;
    end if;
exception when dependent_objects_still_exist then
    raise notice 'schema pgbroker is kept: it holds objects that are not of django_pgbroker';
end $$;
