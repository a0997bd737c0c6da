-- purpose: which of these claims have already been acknowledged by their owner, after its commit was in doubt
-- params:  ids bigint[], tokens bigint[] (by the same position)
-- returns: job_id, lease_token
-- moves:
-- locks:   none
-- index:   execution_pkey
select claim.id, claim.token
from unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) as claim (id, token)
cross join lateral (
    select
    from pgbroker.execution
    where job_id = claim.id
      and lease_token = claim.token
      and outcome <> 6
      and finished_at > pgbroker.clock() - interval '1 day'
      and finished_at <= pgbroker.clock()
    offset 0
) as recorded
