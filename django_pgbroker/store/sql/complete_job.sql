-- purpose: complete a job inside the transaction of its handler, as the last statement before the commit
-- params:  id bigint, token bigint, run_microseconds bigint, result text (JSON, or null), reason text (or null)
-- returns: nothing; an error of SQLSTATE PB001 where the claim is over, PB002 where the job is to be cancelled
-- moves:   running -> completed
-- locks:   the job's row, waited for
-- index:   job_pkey
select pgbroker.complete_job(
    %(id)s::bigint, %(token)s::bigint, %(run_microseconds)s::bigint, %(result)s::text::jsonb, %(reason)s::text
)
