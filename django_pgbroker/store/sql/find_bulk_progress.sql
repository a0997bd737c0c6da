-- purpose: how far a bulk verb has come, by what it has written into the audit log with its changes
-- params:  target jsonb (as in {"bulk": 7})
-- returns: the last id that it has reached (0: none), how many jobs it has changed
-- moves:
-- locks:   none
-- index:   audit_entry_target
select coalesce(max((after ->> 'reached')::bigint), 0), coalesce(sum(count), 0)::bigint
from pgbroker.audit_entry
where target @> %(target)s::jsonb
