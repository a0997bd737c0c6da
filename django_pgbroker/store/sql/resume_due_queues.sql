-- purpose: let queues be claimed again whose pause was to end by now, and record it
-- params:  actor, source, reason text (for the audit)
-- returns: the queue's name, one a row
-- moves:
-- locks:   rows of queues, skipping rows that others hold
-- index:
with due as materialized (
    select id, name, paused_at, paused_by, pause_reason, resume_at
    from pgbroker.queue
    where resume_at <= pgbroker.clock()
    for no key update skip locked
), resumed as (
    update pgbroker.queue
    set paused_at = null, paused_by = null, pause_reason = null, resume_at = null
    where id = any (array(select id from due))
)
insert into pgbroker.audit_entry (actor, source, action, target, reason, before, after)
select
    %(actor)s::text, %(source)s::text, 'queue.resume', jsonb_build_object('queue', name), %(reason)s::text,
    jsonb_build_object(
        'paused_at', paused_at, 'paused_by', paused_by, 'pause_reason', pause_reason, 'resume_at', resume_at
    ),
    jsonb_build_object('paused_at', null)
from due
returning target ->> 'queue';
