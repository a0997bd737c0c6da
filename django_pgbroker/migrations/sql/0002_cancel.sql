-- A running job that somebody wants cancelled: its row says so, and the acknowledge reads it under the lock it holds anyway.

alter table pgbroker.job
    add column cancel_requested_at timestamptz,
    add column cancel_requested_by text,
    add column cancel_reason text;
