-- purpose: dead rows, vacuums, sizes and ages of the tables of the broker
-- params:
-- returns: name, whether a partition, live and dead rows (estimates), dead rows that start a vacuum, whether autovacuum
--          looks after it, seconds since the last autovacuum or vacuum and since the last analyze, bytes of the table with
--          TOAST, of TOAST alone and of the indexes, age in transactions and in multixacts
-- moves:
-- locks:   none
-- index:   the catalogue's own
select
    tables.relname::text as name,
    tables.relispartition as is_partition,
    pg_stat_get_live_tuples(tables.oid) as live,
    pg_stat_get_dead_tuples(tables.oid) as dead,
    coalesce(own.threshold, current_setting('autovacuum_vacuum_threshold')::float8)
        + coalesce(own.scale, current_setting('autovacuum_vacuum_scale_factor')::float8)
        * greatest(tables.reltuples, 0) as vacuum_at,
    coalesce(own.is_enabled, true) as is_looked_after,
    extract(epoch from pgbroker.clock() - greatest(
        pg_stat_get_last_autovacuum_time(tables.oid), pg_stat_get_last_vacuum_time(tables.oid)
    ))::float8 as vacuumed_seconds_ago,
    extract(epoch from pgbroker.clock() - greatest(
        pg_stat_get_last_autoanalyze_time(tables.oid), pg_stat_get_last_analyze_time(tables.oid)
    ))::float8 as analysed_seconds_ago,
    pg_table_size(tables.oid) as table_bytes,
    case when tables.reltoastrelid = 0 then 0 else pg_total_relation_size(tables.reltoastrelid) end as toast_bytes,
    pg_indexes_size(tables.oid) as index_bytes,
    age(tables.relfrozenxid)::bigint as transaction_age,
    mxid_age(tables.relminmxid)::bigint as multixact_age
from pg_class as tables
cross join lateral (
    select
        max(option_value::float8) filter (where option_name = 'autovacuum_vacuum_threshold') as threshold,
        max(option_value::float8) filter (where option_name = 'autovacuum_vacuum_scale_factor') as scale,
        bool_and(option_value::boolean) filter (where option_name = 'autovacuum_enabled') as is_enabled
    from pg_options_to_table(tables.reloptions)
) as own
where tables.relnamespace = 'pgbroker'::regnamespace and tables.relkind = 'r'
order by tables.relname
