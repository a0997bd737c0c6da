-- Undo 0005_verbs.sql.

drop trigger audit_entry_append_only on pgbroker.audit_entry;
drop function pgbroker.keep_audit();
drop index pgbroker.audit_entry_target;

alter table pgbroker.worker
    drop constraint worker_ordered_concurrency_check,
    drop column paused_queues,
    drop column ordered_concurrency;

alter table pgbroker.queue
    drop column resume_at;

alter table pgbroker.archived_job
    drop column timeout_seconds;
