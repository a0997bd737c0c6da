-- purpose: stop the claims of a queue and record who did it, in one statement; a pause that is there already is replaced
-- params:  queue, actor, source text; reason text (or null); resume_at timestamptz, resume_seconds float8 (when the pause
--          ends, the latter from now; never if both are null)
-- returns: id; no row when the queue is paused in just this way already, or does not exist
-- moves:
-- locks:   the queue's row
-- index:   queue_name_key
with held as materialized (
    select
        id, name, paused_at, paused_by, pause_reason, resume_at,
        coalesce(%(resume_at)s::timestamptz, pgbroker.clock() + %(resume_seconds)s::float8 * interval '1 second') as ends_at
    from pgbroker.queue
    where name = %(queue)s
      and (
          paused_at is null
          or pause_reason is distinct from %(reason)s::text
          or resume_at is distinct from coalesce(
              %(resume_at)s::timestamptz, pgbroker.clock() + %(resume_seconds)s::float8 * interval '1 second'
          )
      )
    for no key update
), paused as (
    update pgbroker.queue
    set paused_at = coalesce(paused_at, pgbroker.clock()),
        paused_by = %(actor)s::text,
        pause_reason = %(reason)s::text,
        resume_at = (select ends_at from held)
    where id = (select id from held)
    returning id, paused_at, resume_at
)
insert into pgbroker.audit_entry (actor, source, action, target, reason, before, after)
select
    %(actor)s::text, %(source)s::text, 'queue.pause', jsonb_build_object('queue', name), %(reason)s::text,
    case
        when held.paused_at is null then jsonb_build_object('paused_at', null)
        else jsonb_build_object(
            'paused_at', held.paused_at, 'paused_by', paused_by, 'pause_reason', pause_reason,
            'resume_at', held.resume_at
        )
    end,
    jsonb_build_object(
        'paused_at', paused.paused_at, 'paused_by', %(actor)s::text, 'pause_reason', %(reason)s::text,
        'resume_at', paused.resume_at
    )
from held
join paused on paused.id = held.id
returning id;
