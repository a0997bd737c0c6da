-- Undo 0002_cancel.sql.

alter table pgbroker.job
    drop column cancel_requested_at,
    drop column cancel_requested_by,
    drop column cancel_reason;
