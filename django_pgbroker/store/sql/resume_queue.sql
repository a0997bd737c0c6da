-- purpose: let a queue be claimed again and record who did it, in one statement
-- params:  queue, actor, source text; reason text (or null)
-- returns: id; no row when the queue is not paused or does not exist
-- moves:
-- locks:   the queue's row
-- index:   queue_name_key
with held as materialized (
    select id, name, paused_at, paused_by, pause_reason, resume_at
    from pgbroker.queue
    where name = %(queue)s and paused_at is not null
    for no key update
), resumed as (
    update pgbroker.queue
    set paused_at = null, paused_by = null, pause_reason = null, resume_at = null
    where id = (select id from held)
)
insert into pgbroker.audit_entry (actor, source, action, target, reason, before, after)
select
    %(actor)s::text, %(source)s::text, 'queue.resume', jsonb_build_object('queue', name), %(reason)s::text,
    jsonb_build_object(
        'paused_at', paused_at, 'paused_by', paused_by, 'pause_reason', pause_reason, 'resume_at', resume_at
    ),
    jsonb_build_object('paused_at', null)
from held
returning id;
