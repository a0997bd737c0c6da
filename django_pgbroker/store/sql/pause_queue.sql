-- purpose: stop the claims of a queue and record who did it, in one statement
-- params:  queue, actor, source text; reason text (or null)
-- returns: id; no row when the queue is paused already or does not exist
-- moves:
-- locks:   the queue's row
-- index:   queue_name_key
with paused as (
    update pgbroker.queue
    set paused_at = pgbroker.clock(), paused_by = %(actor)s::text, pause_reason = %(reason)s::text
    where name = %(queue)s and paused_at is null
    returning id, name, paused_at
)
insert into pgbroker.audit_entry (actor, source, action, target, reason, before, after)
select
    %(actor)s::text, %(source)s::text, 'queue.pause', jsonb_build_object('queue', name), %(reason)s::text,
    jsonb_build_object('paused_at', null), jsonb_build_object('paused_at', paused_at)
from paused
returning id;
