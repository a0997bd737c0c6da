-- purpose: list who keeps dead rows from being removed: sessions, standbys, prepared transactions, replication slots
-- params:  head bigint
-- returns: kind, holder (pid or name), application or owner, state, age in transactions, seconds since its transaction and
--          since its latest statement began (null: unknown to slots, and hidden from a role without pg_read_all_stats)
-- moves:
-- locks:   none
-- index:   the catalogue's own
select kind, holder, who, state, transaction_age::bigint, open_seconds, query_seconds
from (
    select
        case when backend_type = 'walsender' then 'standby' else 'session' end as kind,
        pid::text as holder,
        coalesce(nullif(application_name, ''), usename::text, '?') as who,
        state,
        greatest(age(backend_xmin), age(backend_xid)) as transaction_age,
        extract(epoch from pgbroker.clock() - xact_start)::float8 as open_seconds,
        extract(epoch from pgbroker.clock() - query_start)::float8 as query_seconds
    from pg_stat_activity
    where (backend_xmin is not null or backend_xid is not null)
        and pid <> pg_backend_pid()
        and (datname = current_database() or datname is null)
        -- a vacuum's own snapshot holds up nobody
        and backend_type is distinct from 'autovacuum worker'
    union all
    select
        'prepared transaction',
        gid,
        owner::text,
        'prepared',
        age(transaction),
        extract(epoch from pgbroker.clock() - prepared)::float8,
        null
    from pg_prepared_xacts
    where database = current_database()
    union all
    select
        'replication slot',
        slot_name::text,
        coalesce(plugin::text, slot_type),
        case when active then 'active' else 'inactive' end,
        age(xmin),
        null,
        null
    from pg_replication_slots
    where xmin is not null
) as holders
order by transaction_age desc, open_seconds desc nulls last
limit %(head)s::bigint
