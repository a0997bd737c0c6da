-- purpose: replace what a waiting job carries
-- params:  id bigint, arguments jsonb, version int
-- returns: the arguments before, as JSON text; no row when the job runs or is gone
-- moves:
-- locks:   the payload's row; the caller holds the job's
-- index:   job_payload_pkey
with before as materialized (
    select job_id, arguments::text as arguments
    from pgbroker.job_payload
    where job_id = %(id)s::bigint
),
edited as (
    update pgbroker.job_payload
    set arguments = %(arguments)s::jsonb, version = %(version)s::int
    where job_id = %(id)s::bigint
)
select arguments from before
