-- Undo 0004_atomic.sql.

drop function pgbroker.complete_job(bigint, bigint, bigint, jsonb, text);
