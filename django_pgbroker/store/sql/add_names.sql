-- purpose: create the queues, job types and tenants that do not exist yet; never inside a caller's transaction
-- params:  queues text[], ageing int[] (by the same position), job_types text[], tenants text[] (each sorted by name)
-- returns: nothing
-- moves:
-- locks:   the new rows, until commit
-- index:   queue_name_key
with new_queues as (
    insert into pgbroker.queue (name, ageing_seconds)
    select name, ageing_seconds
    from unnest(%(queues)s::text[], %(ageing)s::int[]) as given (name, ageing_seconds)
    where not exists (select from pgbroker.queue where queue.name = given.name)
    on conflict (name) do nothing
), new_job_types as (
    insert into pgbroker.job_type (name)
    select name
    from unnest(%(job_types)s::text[]) as given (name)
    where not exists (select from pgbroker.job_type where job_type.name = given.name)
    on conflict (name) do nothing
)
insert into pgbroker.tenant (name)
select name
from unnest(%(tenants)s::text[]) as given (name)
where not exists (select from pgbroker.tenant where tenant.name = given.name)
on conflict (name) do nothing;
