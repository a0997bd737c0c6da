-- purpose: how many connections there are, and how many there may be
-- params:
-- returns: connections of all databases, of this one, and of the broker's own; max_connections, those reserved, the limit
--          of this database (null: none)
-- moves:
-- locks:   none
-- index:   the catalogue's own
select
    (select sum(numbackends) from pg_stat_database)::bigint as used,
    (select numbackends from pg_stat_database where datname = current_database())::bigint as used_here,
    (
        select count(*)
        from pg_stat_activity
        where datname = current_database() and application_name like 'pgbroker %%'
    ) as of_broker,
    current_setting('max_connections')::bigint as allowed,
    current_setting('superuser_reserved_connections')::bigint
        + coalesce(current_setting('reserved_connections', true), '0')::bigint as reserved,
    (
        select nullif(datconnlimit, -1)::bigint
        from pg_database
        where datname = current_database()
    ) as allowed_here
