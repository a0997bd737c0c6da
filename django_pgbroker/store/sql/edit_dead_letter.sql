-- purpose: replace what a dead letter carries, before it is redriven
-- params:  id bigint, arguments jsonb, version int
-- returns: the arguments before, as JSON text; no row when the job is no dead letter any more
-- moves:
-- locks:   the archived row, which the caller holds
-- index:   archived_job_pkey
with before as materialized (
    select id, arguments::text as arguments
    from pgbroker.archived_job
    where id = %(id)s::bigint and state = 13
),
edited as (
    update pgbroker.archived_job
    set arguments = %(arguments)s::jsonb, version = %(version)s::int
    where id = %(id)s::bigint and state = 13
)
select arguments from before
