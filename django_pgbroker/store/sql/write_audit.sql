-- purpose: append one act of an operator to the audit log
-- params:  tenant_id bigint (or null), actor, source, action text, target jsonb, reason text (or null),
--          before, after jsonb (or null), count bigint
-- returns: id
-- moves:
-- locks:   none but the new row
-- index:
insert into pgbroker.audit_entry (tenant_id, actor, source, action, target, reason, before, after, count)
values (
    %(tenant_id)s::bigint, %(actor)s::text, %(source)s::text, %(action)s::text, %(target)s::jsonb, %(reason)s::text,
    %(before)s::jsonb, %(after)s::jsonb, %(count)s::bigint
)
returning id
