-- purpose: list sessions that wait for a lock while they hold, or want, one on a table of the broker; the longest first
-- params:  head bigint
-- returns: pid, application, kind of lock, mode, relation, seconds waited, who holds it up (pids and applications)
-- moves:
-- locks:   none
-- index:   the catalogue's own
with locks as materialized (
    select pid, locktype, mode, relation, granted, waitstart
    from pg_locks
    where pid is not null
),
involved as (
    select pid
    from locks
    where relation in (select oid from pg_class where relnamespace = 'pgbroker'::regnamespace)
)
select
    waiting.pid,
    session.application_name,
    waiting.locktype,
    waiting.mode,
    waiting.relation::regclass::text,
    coalesce(extract(epoch from clock_timestamp() - waiting.waitstart), 0)::float8 as seconds,
    array(
        select other.pid || ' ' || coalesce(nullif(other.application_name, ''), '(no name)')
        from pg_stat_activity as other
        where other.pid = any (pg_blocking_pids(waiting.pid))
        order by other.pid
    ) as blockers
from locks as waiting
left join pg_stat_activity as session on session.pid = waiting.pid
where not waiting.granted
    and waiting.pid <> pg_backend_pid()
    and waiting.pid in (select pid from involved)
order by seconds desc
limit %(head)s::bigint
