-- purpose: change by how much waiting outweighs priority in a queue and record who did it; the jobs that are there keep
--          their order until ``reorder_jobs`` comes to them
-- params:  queue, actor, source text; reason text (or null); ageing_seconds int
-- returns: id; no row when it is so already, or the queue does not exist
-- moves:
-- locks:   the queue's row
-- index:   queue_name_key
with held as materialized (
    select id, name, ageing_seconds
    from pgbroker.queue
    where name = %(queue)s and ageing_seconds <> %(ageing_seconds)s::int
    for no key update
), changed as (
    update pgbroker.queue
    set ageing_seconds = %(ageing_seconds)s::int
    where id = (select id from held)
)
insert into pgbroker.audit_entry (actor, source, action, target, reason, before, after)
select
    %(actor)s::text, %(source)s::text, 'queue.set', jsonb_build_object('queue', name), %(reason)s::text,
    jsonb_build_object('ageing_seconds', ageing_seconds), jsonb_build_object('ageing_seconds', %(ageing_seconds)s::int)
from held
returning id;
