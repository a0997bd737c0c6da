-- purpose: try to become the only process that runs a duty, until the end of this transaction
-- params:  key bigint (made from the duty's name)
-- returns: whether the lock was free
-- moves:
-- locks:   one transaction-scoped advisory lock, never waited for
-- index:
select pg_try_advisory_xact_lock(%(key)s::bigint)
