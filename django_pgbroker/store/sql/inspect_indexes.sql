-- purpose: list the indexes of the broker's tables and whether the planner can use them
-- params:
-- returns: name, table, whether it is valid, whether the table is a partition
-- moves:
-- locks:   none
-- index:   the catalogue's own
select
    index_class.relname::text as name,
    table_class.relname::text as table_name,
    index_entry.indisvalid and index_entry.indisready as is_valid,
    table_class.relispartition as is_partition
from pg_index as index_entry
join pg_class as index_class on index_class.oid = index_entry.indexrelid
join pg_class as table_class on table_class.oid = index_entry.indrelid
where table_class.relnamespace = 'pgbroker'::regnamespace and table_class.relkind in ('r', 'p')
order by table_class.relname, index_class.relname
