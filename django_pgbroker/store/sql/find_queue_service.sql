-- purpose: whether anybody takes the jobs of a queue now
-- params:  queue text
-- returns: whether it is paused, whether a live worker serves it
-- moves:
-- locks:   none
-- index:   queue_name_key
select
    exists (select from pgbroker.queue where name = %(queue)s::text and paused_at is not null),
    exists (select from pgbroker.worker where stopped_at is null and jsonb_exists(queues, %(queue)s::text))
