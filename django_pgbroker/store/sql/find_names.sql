-- purpose: say which of a job's three names the caller's transaction can see
-- params:  queue, job_type, tenant text
-- returns: has_queue, has_job_type, has_tenant bool; one row
-- moves:
-- locks:   none
-- index:   queue_name_key
select
    exists (select from pgbroker.queue where name = %(queue)s) as has_queue,
    exists (select from pgbroker.job_type where name = %(job_type)s) as has_job_type,
    exists (select from pgbroker.tenant where name = %(tenant)s) as has_tenant;
