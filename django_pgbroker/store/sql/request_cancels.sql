-- purpose: mark running jobs, so that their workers stop them and their acknowledges end them as cancelled
-- params:  ids bigint[], actor text, reason text (or null)
-- returns: id; no row for a job that does not run, or is marked already: the first mark stays
-- moves:
-- locks:   the jobs' rows, which the caller holds
-- index:   job_running
update pgbroker.job
set cancel_requested_at = pgbroker.clock(), cancel_requested_by = %(actor)s::text, cancel_reason = %(reason)s::text
where id = any (%(ids)s::bigint[]) and state = 1 and cancel_requested_at is null
returning id
